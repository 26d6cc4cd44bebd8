// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/cuda_run.h"
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
  LaunchWithWorkspace(op, call.out, floats, [&](float* workspace, void* stream) {
    return LaunchEaCuda(call.problem, workspace, stream);
  });
  return call.out;
}

at::Tensor EaOnCuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                    std::string_view normalization, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(q.device());
  // float64 has no kernel, because it is only for checking; it uses the reference.
  if (q.scalar_type() == at::kDouble) return EaReference(q, k, v, heads, normalization, valid);
  return Run("efficient_attention", BindEa(q, k, v, heads, normalization, valid));
}

at::Tensor EaModuleOnCuda(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                          std::string_view normalization, bool residual, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(x.device());
  if (x.scalar_type() == at::kDouble)
    return EaModuleReference(x, weights, heads, normalization, residual, valid);
  return Run("efficient_attention_module", BindEaModule(x, weights, heads, normalization, residual, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("efficient_attention", EaOnCuda);
  m.impl("efficient_attention_module", EaModuleAs<EaModuleOnCuda>);
}

}  // namespace saccade::kernels
