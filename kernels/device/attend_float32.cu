#include "kernels/device/attend.cuh"

namespace saccade::kernels {
SACCADE_ATTEND_INSTANTIATIONS(, float);
}  // namespace saccade::kernels
