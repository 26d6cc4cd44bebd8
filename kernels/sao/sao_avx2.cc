#include "kernels/sao/sao_blocks_impl.h"

namespace saccade::kernels {

const SaoCode& SaoAvx2Code() {
  static constexpr SaoCode kCode = {avx2::kBlockCode<float>, avx2::kBlockCode<BFloat16>};
  return kCode;
}

}  // namespace saccade::kernels
