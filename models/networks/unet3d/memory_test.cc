// Alone in its process, whose peak memory it looks at.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

#include "models/networks/unet3d/testing/models.h"

namespace saccade::models {
namespace {

int64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return -1;
}

// As large as one of the paper's test sets has them.
TEST(UnetMemory, AVolumeOf50x800x800StaysBelow4GiB) {
  const auto model = testing::MakeUnet("unet3d_sao_denoise", {});
  const Batch batch = testing::Volumes(1, 50, 800, 800);
  const auto before = std::chrono::steady_clock::now();
  const std::vector<TaskResult> results = model->Run(batch);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
  ASSERT_TRUE(std::holds_alternative<Restoration>(results.at(0)));
  const int64_t peak = PeakBytes();
  RecordProperty("peak_bytes", std::to_string(peak));
  EXPECT_GT(peak, int64_t{1} << 30);  // the volume, its answer and one map at half the sides are more
  EXPECT_LT(peak, int64_t{4} << 30);
  std::printf("peak memory: %.2f GiB, %.0f s\n", static_cast<double>(peak) / (1 << 30), seconds.count());
}

}  // namespace
}  // namespace saccade::models
