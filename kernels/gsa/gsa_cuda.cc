// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include "kernels/gsa/gsa_cuda.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/cuda_run.h"
#include "kernels/gsa/gsa_binding.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const char* op, const at::Tensor& map, const GsaCall& call) {
  if (call.out.numel() == 0) return call.out;
  const int64_t floats = GsaCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op, ": expected at most 2^31 blocks of work on CUDA, got a map of shape ",
              map.sizes());
  LaunchWithWorkspace(op, call.out, floats, [&](float* workspace, void* stream) {
    return LaunchGsaCuda(call.problem, workspace, stream);
  });
  return call.out;
}

at::Tensor GsaOnCuda(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
                     const GsaAttention& attention, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(q.device());
  // float64 has no kernel, because it is only for checking; it uses the reference.
  if (q.scalar_type() == at::kDouble) return GsaReference(q, k, v, attention, valid);
  return Run("gsa", q, BindGsa(q, k, v, attention, valid));
}

at::Tensor GsaModuleOnCuda(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                           const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(x.device());
  if (x.scalar_type() == at::kDouble) return GsaModuleReference(x, weights, attention, valid);
  return Run("gsa_module", x, BindGsaModule(x, weights, attention, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("gsa", GsaAs<GsaOnCuda>);
  m.impl("gsa_module", GsaModuleAs<GsaModuleOnCuda>);
}

}  // namespace saccade::kernels
