#include "kernels/inverted_residual/inverted_residual_blocks_impl.h"

namespace saccade::kernels {

const InvertedResidualCode<float>& InvertedResidualAvx512Code() {
  return avx512::kInvertedResidualCode<float>;
}

}  // namespace saccade::kernels
