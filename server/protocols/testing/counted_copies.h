// Counts copied bytes. Linking this replaces memcpy and memmove for all libraries of the program.
#pragma once

#include <cstddef>

namespace saccade::server::testing {

// Smaller copies are not counted: a tensor's pieces are larger, messages' small fields are not.
inline constexpr size_t kCountedFrom = 2048;

// Bytes copied on all threads since the program began.
size_t CopiedBytes();

}  // namespace saccade::server::testing
