// The inner loops of the inverted residual on rows in scratch memory, once per instruction set.
#pragma once

#include <cstdint>

#include "kernels/common/bfloat16.h"
#include "kernels/inverted_residual/inverted_residual_problem.h"

namespace saccade::kernels {

// What a product writes, position by position.
template <typename T>
struct ProductOutput {
  T* data = nullptr;
  int64_t row = 0;  // from a position to the next
  // The result is limited to 0 to 6, if `relu6`, after `added` was added, [positions][outputs], if not null.
  bool relu6 = false;
  const T* added = nullptr;
};

// out[p][n] = bias[n] + the sum over k of x[p][k] weight[n][k], for the outputs of `units` units from `first`
// on, which are one panel. Positions of x are x_row apart. Of the last unit only the outputs that there are
// get written, or all of it if `whole_units`.
template <typename T, typename Output>
using ProductCode = void (*)(const T* x, int64_t x_row, int64_t positions, const PackedProduct& weights,
                             int64_t first, int64_t units, bool whole_units,
                             const ProductOutput<Output>& out);

// Maps are of type T. What is expanded stays in float32 until it is filtered.
template <typename T>
struct InvertedResidualCode {
  ProductCode<T, float> expand;

  // Filters a row of outputs: out[p][c] is 0 to 6 of bias[c] + the sum over the nine weights. rows[i] are the
  // three rows of inputs, of positions with `row` channels, the first of which is the one left of the first
  // output's middle; out's positions are out_row apart.
  void (*filter)(const float* const rows[3], int64_t row, const float* weights, const float* bias,
                 int64_t stride, int64_t positions, T* out, int64_t out_row);

  ProductCode<T, T> project;
};

const InvertedResidualCode<float>& InvertedResidualPortableCode();
#if defined(__x86_64__)
const InvertedResidualCode<float>& InvertedResidualAvx2Code();
const InvertedResidualCode<float>& InvertedResidualAvx512Code();
// For processors that multiply bfloat16 themselves. There is no other code for bfloat16.
const InvertedResidualCode<BFloat16>& InvertedResidualAvx512BFloat16Code();
#endif

// The panels of a product with so many units of outputs: as few as possible, of nearly equal size.
inline constexpr int64_t kPanelUnits = 3;
template <typename Visit>
void ForPanels(int64_t units, const Visit& visit) {
  const int64_t panels = (units + kPanelUnits - 1) / kPanelUnits;
  for (int64_t i = 0; i < panels; ++i) {
    const int64_t first = units * i / panels;
    visit(first, units * (i + 1) / panels - first);
  }
}

}  // namespace saccade::kernels
