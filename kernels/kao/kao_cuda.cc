// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include "kernels/kao/kao_cuda.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/cuda_run.h"
#include "kernels/kao/kao_binding.h"

namespace saccade::kernels {
namespace {

at::Tensor RunOnCuda(const char* op, const KaoCall& call) {
  if (call.out.numel() == 0) return call.out;
  const int64_t floats = KaoCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op, ": expected at most 2^31 blocks of work on CUDA, got a result of shape ",
              call.out.sizes());
  LaunchWithWorkspace(op, call.out, floats, [&](float* workspace, void* stream) {
    return LaunchKaoCuda(call.problem, workspace, stream);
  });
  return call.out;
}

at::Tensor KaoCudaOf(KaoKind kind, const KaoArguments& a) {
  const c10::cuda::CUDAGuard device(a.q.device());
  // float64 has no kernel, because it is only for checking; it uses the reference.
  return a.q.scalar_type() == at::kDouble ? KaoReference(kind, a)
                                          : RunOnCuda(KaoName(kind), BindKao(kind, a));
}

at::Tensor KaoModuleCuda(const KaoModuleArguments& a) {
  const c10::cuda::CUDAGuard device(a.x.device());
  return a.x.scalar_type() == at::kDouble ? KaoModuleReference(a) : RunOnCuda("kao_module", BindKaoModule(a));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("kao_kv", KaoAs<KaoKind::kMapQueries, KaoCudaOf>);
  m.impl("kao_qkv", KaoAs<KaoKind::kAverageQueries, KaoCudaOf>);
  m.impl("kao_module", KaoModuleAs<KaoModuleCuda>);
}

}  // namespace saccade::kernels
