#include "client/load/stage_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::client {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::Pair;

TEST(SummariseStages, SplitsTheLatency) {
  LoadResult result{.samples = {}, .not_sent = 7, .elapsed = absl::Seconds(2)};
  for (int i = 0; i < 3; ++i) {
    LoadSample sample{.due = {},
                      .sent = absl::Milliseconds(i == 0 ? 5 : 0),
                      .ended = absl::Milliseconds(30),
                      .waited = true,
                      .status = absl::OkStatus()};
    sample.timings.decode = absl::Milliseconds(2);
    sample.timings.queue = absl::Milliseconds(3);
    sample.timings.infer = absl::Milliseconds(10);
    sample.timings.encode = absl::Microseconds(250);
    sample.timings.total = absl::Milliseconds(16);
    sample.batch_size = i == 2 ? 1 : 4;
    result.samples.push_back(sample);
  }
  result.samples.push_back({.due = {},
                            .sent = {},
                            .ended = absl::Milliseconds(1),
                            .status = absl::ResourceExhaustedError("the queue is full")});
  result.samples.push_back({.due = {},
                            .sent = absl::Milliseconds(2),
                            .ended = absl::Milliseconds(3),
                            .status = absl::ResourceExhaustedError("the queue is full")});
  const StageSummary summary = SummariseStages(result);
  EXPECT_EQ(summary.requests, 5);
  EXPECT_EQ(summary.answers, 3);
  EXPECT_EQ(summary.failed, 2);
  EXPECT_EQ(summary.not_sent, 7);
  EXPECT_DOUBLE_EQ(summary.per_second, 1.5);
  EXPECT_EQ(summary.held, 1);
  EXPECT_EQ(summary.woken_late, 1);
  EXPECT_DOUBLE_EQ(summary.mean_batch_size, 3);
  EXPECT_THAT(summary.batch_sizes, ElementsAre(Pair(1, 1), Pair(4, 2)));
  EXPECT_THAT(summary.failures, ElementsAre(Pair("RESOURCE_EXHAUSTED", FieldsAre(2, "the queue is full"))));
  ASSERT_EQ(summary.stages.size(), 8);
  EXPECT_EQ(summary.stages[0].name, "latency");
  for (size_t i = 0; i < 3; ++i) {
    absl::Duration sum;
    for (size_t stage = 1; stage < summary.stages.size(); ++stage) sum += summary.stages[stage].times[i];
    EXPECT_EQ(sum, summary.stages[0].times[i]);
  }
  EXPECT_EQ(summary.stages[6].name, "encode");
  EXPECT_EQ(summary.stages[6].latency.p99, absl::Microseconds(250));
  EXPECT_EQ(summary.stages[7].latency.p99, absl::Microseconds(750));
}

}  // namespace
}  // namespace saccade::client
