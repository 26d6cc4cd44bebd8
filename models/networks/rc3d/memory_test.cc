// Runs in a process of its own, whose peak memory it checks.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "models/networks/rc3d/testing/models.h"
#include "models/tools/process_memory.h"

namespace saccade::models {
namespace {

// Runs two clips: the second must not add to the first's memory. Only one copy of the stem's first map, 205
// MB, may exist at a time, and nothing else of that size.
TEST(Rc3dMemory, ClipsOf256FramesStayBelow1Point5GiB) {
  const auto model = testing::MakeRc3d({});
  const std::vector<TaskResult> results = model->Run(testing::Clips({256, 250}, 256, 112));
  ASSERT_EQ(results.size(), 2U);
  for (const TaskResult& result : results) EXPECT_TRUE(std::holds_alternative<Actions>(result));
  const int64_t peak = StatusBytes("VmHWM");
  RecordProperty("peak_bytes", std::to_string(peak));
  EXPECT_GT(peak, int64_t{500} << 20);  // less than the weights and the stem's first map take
  EXPECT_LT(peak, int64_t{3} << 29);
  std::printf("peak memory: %.2f GiB\n", static_cast<double>(peak) / (1 << 30));
}

}  // namespace
}  // namespace saccade::models
