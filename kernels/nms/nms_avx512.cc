#include "kernels/nms/nms_blocks_impl.h"

namespace saccade::kernels {

const NmsBlockCode<float>& NmsAvx512Code() { return avx512::kNmsCode<float>; }

}  // namespace saccade::kernels
