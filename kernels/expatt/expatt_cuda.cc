// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include "kernels/expatt/expatt_cuda.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/cuda_run.h"
#include "kernels/expatt/expatt_binding.h"

namespace saccade::kernels {
namespace {

at::Tensor Run(const char* op, const ExpattCall& call) {
  if (call.out.numel() == 0) return call.out;
  const int64_t floats = ExpattCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op,
              ": expected fewer than 2^31 positions and blocks of work on CUDA, got a result of shape ",
              call.out.sizes());
  LaunchWithWorkspace(op, call.out, floats, [&](float* workspace, void* stream) {
    return LaunchExpattCuda(call.problem, workspace, stream);
  });
  return call.out;
}

at::Tensor ExpattOnCuda(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                        const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(v.device());
  // float64 has no kernel, because it is only for checking; it uses the reference.
  if (v.scalar_type() == at::kDouble) return ExpattReference(v, kind, sigma, valid);
  ExpattCall call = BindExpatt(v, CheckExpatt(v, kind, sigma, valid), valid);
  call.problem.device_sigma = sigma.const_data_ptr();
  call.problem.device_sigma_dtype = DtypeOf(sigma);
  return Run("expatt", call);
}

at::Tensor ExpattModuleOnCuda(const at::Tensor& x, const at::Tensor& value_weight,
                              const OptionalTensor& value_bias, const OptionalTensor& out_weight,
                              const OptionalTensor& out_bias, std::string_view kind, double sigma,
                              const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(x.device());
  const ExpattWeights weights{value_weight, value_bias, out_weight, out_bias};
  if (x.scalar_type() == at::kDouble) return ExpattModuleReference(x, weights, kind, sigma, valid);
  const ExpattKind known = CheckExpattModule(x, weights, kind, sigma, valid);
  return Run("expatt_module", BindExpattModule(x, weights, known, sigma, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("expatt", ExpattOnCuda);
  m.impl("expatt_module", ExpattModuleOnCuda);
}

}  // namespace saccade::kernels
