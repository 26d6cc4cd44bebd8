#include "kernels/device/attend.cuh"

namespace saccade::kernels {
SACCADE_ATTEND_INSTANTIATIONS(, DeviceBFloat16);
}  // namespace saccade::kernels
