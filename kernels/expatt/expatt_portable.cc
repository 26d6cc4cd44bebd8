#include "kernels/expatt/expatt_recursion_impl.h"

namespace saccade::kernels {

ExpattRecursion<float> PortableExpattRecursion() { return portable::Recur<float>; }
ExpattRecursion<double> DoubleExpattRecursion() { return portable::Recur<double>; }

}  // namespace saccade::kernels
