// Choice of the CPU code's type parameter from the type of a call's maps. Independent of LibTorch.
#pragma once

#include "kernels/common/bfloat16.h"
#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// Calls run(zero), where zero has the type that maps of `dtype` store: float, double or BFloat16. REQUIRES:
// not float16, for which the CPU has no code (CheckOnCpu rejects it).
template <typename Run>
void WithStoredType(Dtype dtype, const Run& run) {
  switch (dtype) {
    case Dtype::kFloat64:
      run(double());
      break;
    case Dtype::kBFloat16:
      run(BFloat16());
      break;
    default:
      run(float());
  }
}

// Calls run(zero), where zero has the type in which maps of `dtype` are computed: float or double.
template <typename Run>
void WithAccumulateType(Dtype dtype, const Run& run) {
  if (IsDouble(dtype)) {  // NOLINT(bugprone-branch-clone): the branches differ in their type
    run(double());
  } else {
    run(float());
  }
}

}  // namespace saccade::kernels
