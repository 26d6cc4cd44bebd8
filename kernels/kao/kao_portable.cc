#include "kernels/kao/kao_blocks_impl.h"

namespace saccade::kernels {

const KaoCode& KaoPortableCode() {
  static constexpr KaoCode kCode = {portable::kKaoBlockCode<float>, portable::kKaoBlockCode<BFloat16>};
  return kCode;
}

const KaoBlockCode<double>& KaoDoubleCode() { return portable::kKaoBlockCode<double>; }

}  // namespace saccade::kernels
