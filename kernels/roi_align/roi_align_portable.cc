#include "kernels/roi_align/roi_align_blocks_impl.h"

namespace saccade::kernels {

const RoiAlignCode& RoiAlignPortableCode() {
  static constexpr RoiAlignCode kCode = {portable::kRoiAlignCode<float>, portable::kRoiAlignCode<BFloat16>};
  return kCode;
}

const RoiAlignBlockCode<double>& RoiAlignDoubleCode() { return portable::kRoiAlignCode<double>; }

}  // namespace saccade::kernels
