#include "kernels/kao/kao_blocks_impl.h"

namespace saccade::kernels {

const KaoCode& KaoAvx512Code() {
  static constexpr KaoCode kCode = {avx512::kKaoBlockCode<float>, avx512::kKaoBlockCode<BFloat16>};
  return kCode;
}

}  // namespace saccade::kernels
