// Lets allocations of a test program fail.
#pragma once

#include <cstddef>

namespace saccade::server::testing {

// Allocations of `size` bytes or more fail from now on; SIZE_MAX for none. Returns false if they cannot be
// made to fail, because a sanitizer brings operators of its own.
bool FailAllocationsFrom(size_t size);

}  // namespace saccade::server::testing
