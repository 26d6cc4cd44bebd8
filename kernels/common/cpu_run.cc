#include "kernels/common/cpu_run.h"

#include <ATen/ops/empty.h>

#include "kernels/common/check.h"

namespace saccade::kernels {

void CheckOnCpu(const char* op, const char* argument, const at::Tensor& map, const OptionalTensor& valid) {
  CheckDtype(op, argument, map, {at::kFloat, at::kBFloat16, at::kDouble});
  CheckValidExtents(op, valid, map);
}

void CheckFinite(const char* op, std::initializer_list<NamedWeights> all) {
  for (const NamedWeights& each : all) CheckFinite(op, each.name, each.weights);
}

void RunWithWorkspace(const std::function<size_t(int threads)>& bytes,
                      const std::function<void(const Parallel& parallel, std::byte* workspace)>& run) {
  const Parallel parallel = TorchParallel();
  const at::Tensor workspace = at::empty({static_cast<int64_t>(bytes(parallel.threads))}, at::kByte);
  run(parallel, static_cast<std::byte*>(workspace.mutable_data_ptr()));
}

}  // namespace saccade::kernels
