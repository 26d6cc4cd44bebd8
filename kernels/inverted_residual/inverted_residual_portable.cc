#include "kernels/inverted_residual/inverted_residual_blocks_impl.h"

namespace saccade::kernels {

const InvertedResidualCode<float>& InvertedResidualPortableCode() {
  return portable::kInvertedResidualCode<float>;
}

}  // namespace saccade::kernels
