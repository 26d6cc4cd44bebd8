// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include "kernels/gsa/gsa_cuda.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/gsa/gsa_binding.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const char* op, const at::Tensor& map, const GsaCall& call) {
  if (call.out.numel() == 0) return call.out;
  const int64_t floats = GsaCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op, ": expected at most 2^31 blocks of work on CUDA, got a map of shape ",
              map.sizes());
  // The caching allocator orders reuse on this stream, so the memory may be released while the kernels still
  // run.
  const at::Tensor workspace = at::empty({floats}, call.out.options().dtype(at::kFloat));
  const char* error = LaunchGsaCuda(call.problem, workspace.mutable_data_ptr<float>(),
                                    c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(error == nullptr, op, ": CUDA kernel launch failed: ", error);
  return call.out;
}

at::Tensor GsaOnCuda(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v, int64_t heads,
                     const OptionalTensor& column_embedding, const OptionalTensor& row_embedding,
                     const OptionalTensor& middle_scale, const OptionalTensor& middle_shift,
                     std::string_view content, const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(q.device());
  const GsaAttention attention{heads, column_embedding, row_embedding, middle_scale, middle_shift, content};
  // float64 has no kernel, because it is only for checking; it uses the reference.
  if (q.scalar_type() == at::kDouble) return GsaReference(q, k, v, attention, valid);
  return Run("gsa", q, BindGsa(q, k, v, attention, valid));
}

at::Tensor GsaModuleOnCuda(const at::Tensor& x, const at::Tensor& query_weight,
                           const OptionalTensor& key_weight, const at::Tensor& value_weight,
                           const OptionalTensor& query_bias, const OptionalTensor& key_bias,
                           const OptionalTensor& value_bias, int64_t heads,
                           const OptionalTensor& column_embedding, const OptionalTensor& row_embedding,
                           const OptionalTensor& middle_scale, const OptionalTensor& middle_shift,
                           const OptionalTensor& scale, const OptionalTensor& shift, std::string_view content,
                           const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(x.device());
  const GsaAttention attention{heads, column_embedding, row_embedding, middle_scale, middle_shift, content};
  const GsaWeights weights{query_weight, key_weight, value_weight, query_bias,
                           key_bias,     value_bias, scale,        shift};
  if (x.scalar_type() == at::kDouble) return GsaModuleReference(x, weights, attention, valid);
  return Run("gsa_module", x, BindGsaModule(x, weights, attention, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("gsa", GsaOnCuda);
  m.impl("gsa_module", GsaModuleOnCuda);
}

}  // namespace saccade::kernels
