#include "kernels/expatt/expatt_recursion_impl.h"

namespace saccade::kernels {

ExpattRecursion<float> Avx2ExpattRecursion() { return avx2::Recur<float>; }

}  // namespace saccade::kernels
