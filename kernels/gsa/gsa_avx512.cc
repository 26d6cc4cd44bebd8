#include "kernels/gsa/gsa_lines_impl.h"

namespace saccade::kernels {

const GsaLineCode<float>& GsaAvx512LineCode() { return avx512::kLineCode<float>; }

}  // namespace saccade::kernels
