// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/attention/attention_binding.h"
#include "kernels/attention/attention_cuda.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const char* op, const AttentionCall& call) {
  if (call.out.numel() == 0) return call.out;
  const int64_t floats = AttentionCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op,
              ": expected at most 2^31 positions per sample and 2^31 blocks of work on CUDA, got ",
              call.out.sizes());
  // The caching allocator orders reuse on this stream, so the memory may be released while the kernels still
  // run.
  const at::Tensor workspace = at::empty({floats}, call.out.options().dtype(at::kFloat));
  const char* error = LaunchAttentionCuda(call.problem, workspace.mutable_data_ptr<float>(),
                                          c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(error == nullptr, op, ": CUDA kernel launch failed: ", error);
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
  m.impl("attention_module", AttentionModuleArguments<ModuleOnCuda>);
}

}  // namespace saccade::kernels
