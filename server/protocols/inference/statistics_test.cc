#include "server/protocols/inference/statistics.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

TEST(StatisticsMessages, EveryNumberIsInItsPlace) {
  ModelStatistics model{.model = "m", .version = 2, .usage = {}, .cache = {}};
  const auto spent = [](uint64_t count, int64_t ns) { return Spent{count, absl::Nanoseconds(ns)}; };
  model.usage.success = spent(5, 50);
  model.usage.fail = spent(1, 10);
  model.usage.queue = spent(5, 20);
  model.usage.input = spent(5, 3);
  model.usage.infer = spent(5, 25);
  model.usage.output = spent(5, 2);
  model.usage.pictures = 7;
  model.usage.passes = 3;
  model.usage.last = absl::FromUnixMillis(1'700'000'000'123);
  model.usage.by_batch_size = {{2, spent(3, 25)}};
  model.cache = {
      .hits = 4, .misses = 6, .hit_time = absl::Nanoseconds(40), .miss_time = absl::Nanoseconds(60)};
  inference::ModelStatisticsResponse message;
  ToMessage(std::vector<ModelStatistics>{model}, &message);
  ASSERT_EQ(message.model_stats_size(), 1);
  const auto& told = message.model_stats(0);
  EXPECT_EQ(told.name(), "m");
  EXPECT_EQ(told.version(), "2");
  EXPECT_EQ(told.inference_count(), 7u);
  EXPECT_EQ(told.execution_count(), 3u);
  EXPECT_EQ(told.last_inference(), 1'700'000'000'123u);
  EXPECT_EQ(told.inference_stats().success().count(), 5u);
  EXPECT_EQ(told.inference_stats().success().ns(), 50u);
  EXPECT_EQ(told.inference_stats().fail().ns(), 10u);
  EXPECT_EQ(told.inference_stats().queue().ns(), 20u);
  EXPECT_EQ(told.inference_stats().compute_input().ns(), 3u);
  EXPECT_EQ(told.inference_stats().compute_infer().ns(), 25u);
  EXPECT_EQ(told.inference_stats().compute_output().ns(), 2u);
  EXPECT_EQ(told.inference_stats().cache_hit().count(), 4u);
  EXPECT_EQ(told.inference_stats().cache_hit().ns(), 40u);
  EXPECT_EQ(told.inference_stats().cache_miss().count(), 6u);
  EXPECT_EQ(told.inference_stats().cache_miss().ns(), 60u);
  ASSERT_EQ(told.batch_stats_size(), 1);
  EXPECT_EQ(told.batch_stats(0).batch_size(), 2u);
  EXPECT_EQ(told.batch_stats(0).compute_infer().ns(), 25u);
}

}  // namespace
}  // namespace saccade::server
