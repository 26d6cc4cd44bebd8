#include "kernels/roi_align/roi_align_blocks_impl.h"

namespace saccade::kernels {

const RoiAlignCode& RoiAlignAvx512Code() {
  static constexpr RoiAlignCode kCode = {avx512::kRoiAlignCode<float>, avx512::kRoiAlignCode<BFloat16>};
  return kCode;
}

}  // namespace saccade::kernels
