// Lets allocations of a test program fail.
#pragma once

#include <cstddef>
#include <cstdint>

namespace saccade::server::testing {

// Allocations of `size` bytes or more fail from now on; SIZE_MAX for none. Returns false if they cannot be
// made to fail, because a sanitizer brings operators of its own.
bool FailAllocationsFrom(size_t size);

// One allocation fails: the next one if `number` is 0, or the one after as many more; -1 for none. Returns
// false as above.
bool FailAllocation(int64_t number);

}  // namespace saccade::server::testing
