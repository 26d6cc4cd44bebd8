#pragma once

#include <cstdint>
#include <functional>

namespace saccade::kernels {

// The most bytes that LibTorch's CPU allocator held at once for `run` on this thread, beyond what it held
// before. What a library takes by itself (MKL's packing buffers, say) does not pass there and is not counted.
int64_t PeakAllocation(const std::function<void()>& run);

}  // namespace saccade::kernels
