#include "kernels/gsa/gsa_lines_impl.h"

namespace saccade::kernels {

const GsaLineCode<float>& GsaAvx2LineCode() { return avx2::kLineCode<float>; }

}  // namespace saccade::kernels
