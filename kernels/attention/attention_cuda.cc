// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/attention/attention_binding.h"
#include "kernels/attention/attention_cuda.h"
#include "kernels/common/cuda_run.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const char* op, const AttentionCall& call) {
  if (call.out.numel() == 0) return call.out;
  const int64_t floats = AttentionCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op,
              ": expected at most 2^31 positions per sample and 2^31 blocks of work on CUDA, got ",
              call.out.sizes());
  LaunchWithWorkspace(op, call.out, floats, [&](float* workspace, void* stream) {
    return LaunchAttentionCuda(call.problem, workspace, stream);
  });
  return call.out;
}

// float64 has no kernel, because it is only for checking; it uses the reference.
at::Tensor Plain(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                 double scale, AttentionKind kind, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(q.device());
  if (q.scalar_type() == at::kDouble) return AttentionReference(q, k, v, heads, scale, kind, valid);
  return Run(op, BindAttention(op, q, k, v, heads, scale, kind, valid));
}

at::Tensor AttentionOnCuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                           double scale, bool pool, const OptionalTensor& valid) {
  return Plain("attention", q, k, v, heads, scale, pool ? AttentionKind::kPooled : AttentionKind::kSoftmax,
               valid);
}

at::Tensor Attention1nOnCuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                             const OptionalTensor& valid) {
  return Plain("attention_1n", q, k, v, heads, 1, AttentionKind::kMean, valid);
}

at::Tensor ModuleOnCuda(const at::Tensor& x, AttentionKind kind, const AttentionWeights& weights,
                        int64_t heads, double logit_scale, bool residual, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(x.device());
  if (x.scalar_type() == at::kDouble) {
    return AttentionModuleReference(x, kind, weights, heads, logit_scale, residual, valid);
  }
  return Run("attention_module", BindAttentionModule(x, kind, weights, heads, logit_scale, residual, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("attention", AttentionOnCuda);
  m.impl("attention_1n", Attention1nOnCuda);
  m.impl("attention_module", AttentionModuleAs<ModuleOnCuda>);
}

}  // namespace saccade::kernels
