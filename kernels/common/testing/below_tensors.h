// Helpers for the tests that run under the sanitizers, without LibTorch.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/feature_map.h"
#include "kernels/common/parallel.h"

namespace saccade::kernels {

// Returns a Parallel that starts exactly `threads` new threads in every call.
inline Parallel PlainThreads(int threads) {
  return {.threads = threads, .run = [threads](int64_t tasks, int64_t, const Parallel::Task& task) {
            std::vector<std::thread> running;
            for (int t = 0; t < threads; ++t) {
              running.emplace_back(
                  [&task, tasks, threads, t] { task(tasks * t / threads, tasks * (t + 1) / threads, t); });
            }
            for (auto& thread : running) thread.join();
          }};
}

// Returns the instruction sets that this processor supports.
inline std::vector<CpuIsa> InstructionSets() {
  std::vector<CpuIsa> sets;
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa <= BestCpuIsa()) sets.push_back(isa);
  }
  return sets;
}

// `size` and `valid` ([B, dims], may be empty) must outlive the result.
inline Extent ExtentOf(const std::vector<int64_t>& size, const std::vector<int64_t>& valid) {
  Extent extent;
  extent.spatial_dims = static_cast<int>(size.size());
  for (int d = 0; d < extent.spatial_dims; ++d) {
    extent.size[kMaxSpatialDims - extent.spatial_dims + d] = size[d];
  }
  extent.valid = valid.empty() ? nullptr : valid.data();
  return extent;
}

// Returns true if a and b are equal bit for bit, including NaNs.
template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && __builtin_memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace saccade::kernels
