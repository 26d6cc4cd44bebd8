// The inverted residual for maps of bfloat16, on processors that multiply it themselves: a step of a product
// adds a pair of terms to a float32 sum.
#include <immintrin.h>

#include <cstring>

#include "kernels/inverted_residual/inverted_residual_blocks_impl.h"

namespace saccade::kernels {
namespace SACCADE_ISA {

template <>
struct Step<BFloat16> {
  static constexpr int64_t kInputs = 2;
  using Weights = __m512bh;
  static Weights LoadWeights(const BFloat16* from) {
    return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
  }
  static Weights Spread(const BFloat16* x) {
    int pair;
    std::memcpy(&pair, x, sizeof(pair));
    __m512i all = _mm512_set1_epi32(pair);
#ifdef __clang__
    // Clang 16 crashes when it folds the load into a vector of bfloat16.
    asm("" : "+v"(all));
#endif
    return reinterpret_cast<Weights>(all);
  }
  static Vec<float> Add(Vec<float> sum, Weights x, Weights weights) {
    return reinterpret_cast<Vec<float>>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), x, weights));
  }
};

}  // namespace SACCADE_ISA

const InvertedResidualCode<BFloat16>& InvertedResidualAvx512BFloat16Code() {
  return avx512_bf16::kInvertedResidualCode<BFloat16>;
}

}  // namespace saccade::kernels
