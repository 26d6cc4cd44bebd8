// How much the program copies. Whoever links this has memcpy and memmove that count, in every library.
#pragma once

#include <cstddef>

namespace saccade::server::testing {

// Copies of at least so many bytes count: a tensor's pieces do, messages' small fields do not.
inline constexpr size_t kCountedFrom = 2048;

// Since the program began, on all threads.
size_t CopiedBytes();

}  // namespace saccade::server::testing
