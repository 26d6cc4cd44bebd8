#include "kernels/inverted_residual/inverted_residual_blocks_impl.h"

namespace saccade::kernels {

const InvertedResidualCode<float>& InvertedResidualAvx2Code() { return avx2::kInvertedResidualCode<float>; }

}  // namespace saccade::kernels
