// Conversion of tensors to the plain problem that the CPU and CUDA code take.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/gsa/gsa_impl.h"
#include "kernels/gsa/gsa_problem.h"

namespace saccade::kernels {

// A problem, the tensors that its pointers point into, and the result, allocated but not yet written. The
// caller's maps must outlive it.
struct GsaCall {
  GsaProblem problem;
  at::Tensor out;
  std::vector<at::Tensor> kept;
};

// Check the arguments (see CheckGsa), and copy weights that are not dense or not of the accumulation type.
// Maps are read in place.
GsaCall BindGsa(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
                const GsaAttention& attention, const OptionalTensor& valid);
GsaCall BindGsaModule(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                      const OptionalTensor& valid);

}  // namespace saccade::kernels
