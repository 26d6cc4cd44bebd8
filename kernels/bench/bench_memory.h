#pragma once

#include <cstdint>
#include <functional>

namespace saccade::kernels {

// Returns the peak of bytes that LibTorch's CPU allocator held for `run` on this thread, beyond what it held
// before. Memory that libraries allocate themselves (such as MKL's packing buffers) is not counted.
int64_t PeakAllocation(const std::function<void()>& run);

}  // namespace saccade::kernels
