// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include "kernels/kao/kao_cuda.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/kao/kao_binding.h"

namespace saccade::kernels {
namespace {

at::Tensor RunOnCuda(const char* op, const KaoCall& call) {
  if (call.out.numel() == 0) return call.out;
  const int64_t floats = KaoCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op, ": expected at most 2^31 blocks of work on CUDA, got a result of shape ",
              call.out.sizes());
  // The caching allocator orders reuse on this stream, so the memory may be released while the kernels still
  // run.
  const at::Tensor workspace = at::empty({floats}, call.out.options().dtype(at::kFloat));
  const char* error = LaunchKaoCuda(call.problem, workspace.mutable_data_ptr<float>(),
                                    c10::cuda::getCurrentCUDAStream().stream());
  TORCH_CHECK(error == nullptr, op, ": CUDA kernel launch failed: ", error);
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
