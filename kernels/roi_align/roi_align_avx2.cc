#include "kernels/roi_align/roi_align_blocks_impl.h"

namespace saccade::kernels {

const RoiAlignCode& RoiAlignAvx2Code() {
  static constexpr RoiAlignCode kCode = {avx2::kRoiAlignCode<float>, avx2::kRoiAlignCode<BFloat16>};
  return kCode;
}

}  // namespace saccade::kernels
