// Runs in a process of its own, whose peak memory it checks.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "models/networks/unet3d/testing/models.h"
#include "models/tools/process_memory.h"

namespace saccade::models {
namespace {

// The volume size of one of the paper's test sets.
TEST(UnetMemory, AVolumeOf50x800x800StaysBelow4GiB) {
  const auto model = testing::MakeUnet("unet3d_sao_denoise", {});
  const Batch batch = testing::Volumes(1, 50, 800, 800);
  const auto before = std::chrono::steady_clock::now();
  const std::vector<TaskResult> results = model->Run(batch);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
  ASSERT_TRUE(std::holds_alternative<Restoration>(results.at(0)));
  const int64_t peak = StatusBytes("VmHWM");
  RecordProperty("peak_bytes", std::to_string(peak));
  EXPECT_GT(peak, int64_t{1} << 30);  // less than the volume, its result and one map at half the sides take
  EXPECT_LT(peak, int64_t{4} << 30);
  std::printf("peak memory: %.2f GiB, %.0f s\n", static_cast<double>(peak) / (1 << 30), seconds.count());
}

}  // namespace
}  // namespace saccade::models
