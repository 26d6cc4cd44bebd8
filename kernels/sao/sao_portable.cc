#include "kernels/sao/sao_blocks_impl.h"

namespace saccade::kernels {

const SaoCode& SaoPortableCode() {
  static constexpr SaoCode kCode = {portable::kBlockCode<float>, portable::kBlockCode<BFloat16>};
  return kCode;
}

const SaoBlockCode<double>& SaoDoubleCode() { return portable::kBlockCode<double>; }

}  // namespace saccade::kernels
