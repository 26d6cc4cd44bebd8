#include "kernels/expatt/expatt_recursion_impl.h"

namespace saccade::kernels {

ExpattRecursion<float> Avx512ExpattRecursion() { return avx512::Recur<float>; }

}  // namespace saccade::kernels
