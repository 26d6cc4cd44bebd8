#include "kernels/sao/sao_blocks_impl.h"

namespace saccade::kernels {

const SaoCode& SaoAvx512Code() {
  static constexpr SaoCode kCode = {avx512::kBlockCode<float>, avx512::kBlockCode<BFloat16>};
  return kCode;
}

}  // namespace saccade::kernels
