#include "kernels/kao/kao_blocks_impl.h"

namespace saccade::kernels {

const KaoCode& KaoAvx2Code() {
  static constexpr KaoCode kCode = {avx2::kKaoBlockCode<float>, avx2::kKaoBlockCode<BFloat16>};
  return kCode;
}

}  // namespace saccade::kernels
