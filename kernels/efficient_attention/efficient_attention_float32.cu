#include "kernels/efficient_attention/efficient_attention_tiled.cuh"

namespace saccade::kernels {
template void RunEaTiled<float>(const EaTiled&, const StreamLaunch&);
}  // namespace saccade::kernels
