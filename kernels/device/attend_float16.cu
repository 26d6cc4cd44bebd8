#include "kernels/device/attend.cuh"

namespace saccade::kernels {
SACCADE_ATTEND_INSTANTIATIONS(, DeviceHalf);
}  // namespace saccade::kernels
