#include "kernels/nms/nms_blocks_impl.h"

namespace saccade::kernels {

const NmsBlockCode<float>& NmsPortableCode() { return portable::kNmsCode<float>; }

const NmsBlockCode<double>& NmsDoubleCode() { return portable::kNmsCode<double>; }

}  // namespace saccade::kernels
