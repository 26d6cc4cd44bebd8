// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/cuda_run.h"
#include "kernels/sao/sao_binding.h"
#include "kernels/sao/sao_cuda.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const char* op, const SaoCall& call) {
  if (call.out.numel() == 0) return call.out;
  const int64_t floats = SaoCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op,
              ": expected at most 160 heads, 5120 channels and a batch of 65535 on CUDA, got ",
              call.problem.heads, " heads and ", call.q.sizes());
  LaunchWithWorkspace(op, call.out, floats, [&](float* workspace, void* stream) {
    return LaunchSaoCuda(call.problem, DtypeOf(call.q), workspace, stream);
  });
  return call.out;
}

at::Tensor SaoOnCuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
                     int64_t heads, bool global_term, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(q.device());
  // float64 has no kernel, because it is only for checking; it uses the reference.
  if (q.scalar_type() == at::kDouble) return SaoReference(q, k, v, w, heads, global_term, valid);
  return Run("sao", BindSao(q, k, v, w, heads, global_term, valid));
}

at::Tensor SaoModuleOnCuda(const at::Tensor& x, const SaoWeights& weights, int64_t heads, bool global_term,
                           bool residual, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(x.device());
  if (x.scalar_type() == at::kDouble) {
    return SaoModuleReference(x, weights, heads, global_term, residual, valid);
  }
  return Run("sao_module", BindSaoModule(x, weights, heads, global_term, residual, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("sao", SaoOnCuda);
  m.impl("sao_module", SaoModuleAs<SaoModuleOnCuda>);
}

}  // namespace saccade::kernels
