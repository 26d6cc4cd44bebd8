// Conversion of tensors to the plain problem that the CPU and CUDA code take.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/kao/kao_impl.h"
#include "kernels/kao/kao_problem.h"

namespace saccade::kernels {

// A problem, the tensors that its pointers point into, and the result, allocated but not yet written.
struct KaoCall {
  KaoProblem problem;
  std::vector<at::Tensor> weights;
  OptionalTensor valid;
  at::Tensor out;
};

// Check the arguments (see CheckKao) and copy weights that are not of the accumulation type. Maps are read in
// place.
KaoCall BindKao(KaoKind kind, const KaoArguments& a);
KaoCall BindKaoModule(const KaoModuleArguments& a);

}  // namespace saccade::kernels
