// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/efficient_attention/efficient_attention_binding.h"
#include "kernels/efficient_attention/efficient_attention_cuda.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const char* op, const EaCall& call) {
  if (call.out.numel() == 0) return call.out;
  const int64_t floats = EaCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op,
              ": expected at most 2^31 positions per sample and 2^31 blocks of work on CUDA, got ",
              call.out.sizes());
  // The caching allocator orders reuse on this stream, so the memory may be released while the kernels still
  // run.
  const at::Tensor workspace = at::empty({floats}, call.out.options().dtype(at::kFloat));
  const char* error = LaunchEaCuda(call.problem, workspace.mutable_data_ptr<float>(),
                                   c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(error == nullptr, op, ": CUDA kernel launch failed: ", error);
  return call.out;
}

at::Tensor EaOnCuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                    std::string_view normalization, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(q.device());
  // float64 has no kernel, because it is only for checking; it uses the reference.
  if (q.scalar_type() == at::kDouble) return EaReference(q, k, v, heads, normalization, valid);
  return Run("efficient_attention", BindEa(q, k, v, heads, normalization, valid));
}

at::Tensor EaModuleOnCuda(const at::Tensor& x, const at::Tensor& key_weight, const at::Tensor& query_weight,
                          const at::Tensor& value_weight, const OptionalTensor& key_bias,
                          const OptionalTensor& query_bias, const OptionalTensor& value_bias,
                          const OptionalTensor& out_weight, const OptionalTensor& out_bias, int64_t heads,
                          std::string_view normalization, bool residual, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(x.device());
  const EaWeights weights = {key_weight, query_weight, value_weight, key_bias,
                             query_bias, value_bias,   out_weight,   out_bias};
  if (x.scalar_type() == at::kDouble)
    return EaModuleReference(x, weights, heads, normalization, residual, valid);
  return Run("efficient_attention_module", BindEaModule(x, weights, heads, normalization, residual, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("efficient_attention", EaOnCuda);
  m.impl("efficient_attention_module", EaModuleOnCuda);
}

}  // namespace saccade::kernels
