#include "kernels/bench/bench_memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>

namespace saccade::kernels {
namespace {

// Receives LibTorch's allocation reports through the hook that its profiler uses.
class PeakListener : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t change, size_t, size_t, c10::Device device) override {
    if (!device.is_cpu()) return;
    held_ += change;
    peak_ = std::max(peak_, held_);
  }

  bool memoryProfilingEnabled() const override { return true; }

  int64_t peak() const { return peak_; }

 private:
  int64_t held_ = 0;
  int64_t peak_ = 0;
};

}  // namespace

int64_t PeakAllocation(const std::function<void()>& run) {
  const auto listener = std::make_shared<PeakListener>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, listener);
  run();
  return listener->peak();
}

}  // namespace saccade::kernels
