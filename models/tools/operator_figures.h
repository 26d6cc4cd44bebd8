// The tables of operators in "Kronecker Attention Networks" and "Siamese Attention Networks", beside
// kernels/bench/paper_counts.h.
#pragma once

namespace saccade::models {

// Prints the published figures that do not come out, in the papers' precision, as a table in Markdown.
void PrintDifferingOperators();

}  // namespace saccade::models
