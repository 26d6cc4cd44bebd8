// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/sao/sao_binding.h"
#include "kernels/sao/sao_cuda.h"

namespace saccade::kernels {
namespace {

SaoCudaDtype DtypeOf(const at::Tensor& x) {
  return x.scalar_type() == at::kHalf       ? SaoCudaDtype::kFloat16
         : x.scalar_type() == at::kBFloat16 ? SaoCudaDtype::kBFloat16
                                            : SaoCudaDtype::kFloat32;
}

at::Tensor Run(const char* op, const SaoCall& call) {
  if (call.out.numel() == 0) return call.out;
  const int64_t floats = SaoCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op,
              ": expected at most 160 heads, 5120 channels and a batch of 65535 on CUDA, got ",
              call.problem.heads, " heads and ", call.q.sizes());
  // The caching allocator orders reuse on this stream, so the memory may be released while the kernels still
  // run.
  const at::Tensor workspace = at::empty({floats}, call.out.options().dtype(at::kFloat));
  const char* error = LaunchSaoCuda(call.problem, DtypeOf(call.q), workspace.mutable_data_ptr<float>(),
                                    c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(error == nullptr, op, ": CUDA kernel launch failed: ", error);
  return call.out;
}

at::Tensor SaoOnCuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
                     int64_t heads, bool global_term, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(q.device());
  // float64 has no kernel, because it is only for checking; it uses the reference.
  if (q.scalar_type() == at::kDouble) return SaoReference(q, k, v, w, heads, global_term, valid);
  return Run("sao", BindSao(q, k, v, w, heads, global_term, valid));
}

at::Tensor SaoModuleOnCuda(const at::Tensor& x, const at::Tensor& value_weight, const OptionalTensor& w,
                           const at::Tensor& scale, const at::Tensor& shift, int64_t heads, bool global_term,
                           bool residual, const OptionalTensor& valid, const OptionalTensor& query_weight,
                           const OptionalTensor& key_weight) {
  const c10::cuda::CUDAGuard device(x.device());
  if (x.scalar_type() == at::kDouble) {
    return SaoModuleReference(x, value_weight, w, scale, shift, heads, global_term, residual, valid,
                              query_weight, key_weight);
  }
  return Run("sao_module", BindSaoModule(x, value_weight, w, scale, shift, heads, global_term, residual,
                                         valid, query_weight, key_weight));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("sao", SaoOnCuda);
  m.impl("sao_module", SaoModuleOnCuda);
}

}  // namespace saccade::kernels
