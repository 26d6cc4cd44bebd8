#include "kernels/nms/nms_blocks_impl.h"

namespace saccade::kernels {

const NmsBlockCode<float>& NmsAvx2Code() { return avx2::kNmsCode<float>; }

}  // namespace saccade::kernels
