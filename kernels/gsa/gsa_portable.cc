// The portable loops, and the choice of an instruction set.
#include "kernels/gsa/gsa_lines_impl.h"

namespace saccade::kernels {

const GsaLineCode<float>& GsaPortableLineCode() { return portable::kLineCode<float>; }
const GsaLineCode<double>& GsaDoubleLineCode() { return portable::kLineCode<double>; }

template <>
const GsaLineCode<float>& GsaLineCodeFor<float>([[maybe_unused]] CpuIsa isa) {
#if defined(__x86_64__)
  if (isa == CpuIsa::kAvx2) return GsaAvx2LineCode();
  if (isa == CpuIsa::kAvx512) return GsaAvx512LineCode();
#endif
  return GsaPortableLineCode();
}

template <>
const GsaLineCode<double>& GsaLineCodeFor<double>(CpuIsa /*isa*/) {
  return GsaDoubleLineCode();
}

}  // namespace saccade::kernels
