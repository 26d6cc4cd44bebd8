// Runs in a process of its own, whose peak memory it checks.
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "models/networks/psmnet/testing/models.h"
#include "models/testing/batches.h"
#include "models/tools/process_memory.h"

namespace saccade::models {
namespace {

// Runs two pairs: the second must not add to the first's memory.
TEST(PsmnetMemory, APairOf540x960StaysBelow3GiB) {
  const auto model = testing::MakePsmnet({});
  const at::Tensor pixels = at::randn({2, 6, 544, 960});
  const std::vector<TaskResult> results = model->Run(testing::WholeBatch(pixels));
  ASSERT_EQ(results.size(), 2U);
  for (const TaskResult& result : results) EXPECT_TRUE(std::holds_alternative<Disparity>(result));
  const int64_t peak = StatusBytes("VmHWM");
  RecordProperty("peak_bytes", std::to_string(peak));
  EXPECT_GT(peak, int64_t{500} << 20);  // less than a cost volume and the features take
  EXPECT_LT(peak, int64_t{3} << 30);
  std::printf("peak memory: %.2f GiB\n", static_cast<double>(peak) / (1 << 30));
}

}  // namespace
}  // namespace saccade::models
