// Shared by the CPU bindings of all operators: checks of values, memory and threads of a call.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <initializer_list>

#include "kernels/common/binding.h"
#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"

namespace saccade::kernels {

// Throws c10::Error unless the CPU code supports the map's dtype and the extents lie within the map.
void CheckOnCpu(const char* op, const char* argument, const at::Tensor& map, const OptionalTensor& valid);

// A tensor and the name that its operator's schema gives it.
struct NamedWeights {
  const char* name;
  OptionalTensor weights;
};
// Throws c10::Error if any of the given weights holds an infinity or NaN.
void CheckFinite(const char* op, std::initializer_list<NamedWeights> all);

// Calls `run` with LibTorch's threads and bytes(threads) bytes of uninitialised workspace.
void RunWithWorkspace(const std::function<size_t(int threads)>& bytes,
                      const std::function<void(const Parallel& parallel, std::byte* workspace)>& run);

// Runs an operator's CPU code, which is given by its pair of functions kBytes(problem, threads) and
// kRun(problem, isa, parallel, workspace). Blocks until the result is written.
template <auto kBytes, auto kRun, typename Problem>
void RunCpuCode(const Problem& problem) {
  RunWithWorkspace([&](int threads) { return kBytes(problem, threads); },
                   [&](const Parallel& parallel, std::byte* workspace) {
                     kRun(problem, BestCpuIsa(), parallel, workspace);
                   });
}

}  // namespace saccade::kernels
