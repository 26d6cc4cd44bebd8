#include "client/cli/tune/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace saccade::client {
namespace {

using server::simulation::FromMilliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Advice Made() {
  Advice advice;
  advice.measurement.model = "net";
  advice.measurement.precision = "bf16";
  advice.many_precisions = true;
  advice.measurement.item_bytes = 1 << 20;
  advice.measurement.decode = absl::Milliseconds(3);
  advice.measurement.timing = {.buckets = {{.id = 1,
                                            .name = "64x64",
                                            .items = 1000,
                                            .passes = {absl::Milliseconds(4), absl::Milliseconds(6)},
                                            .smallest = 1,
                                            .largest = 2,
                                            .deviation = 0}},
                               .instances = 2,
                               .threads = 2,
                               .cores = 8,
                               .max_queue_size = 256,
                               .model_bytes = 100 << 20,
                               .resident_bytes = int64_t{1} << 30};
  advice.traffic.rate = 900;
  advice.goal.p99 = FromMilliseconds(50);
  advice.found.configuration = {.replicas = 3, .instances = 2, .max_batch_size = 2, .max_queue_size = 40};
  advice.breaking = {.what = "cores", .holds = 1000, .breaks = 1020, .before = {}, .after = {}};
  advice.breaking.before.demand = 0.8;
  advice.breaking.after.busy = 0.97;
  return advice;
}

TEST(AdviceTest, ConfigHasTheServersFields) {
  EXPECT_EQ(ConfigText(Made()),
            "max_batch_size: 2\n"
            "instance_group { count: 2 kind: KIND_CPU }\n"
            "dynamic_batching {\n"
            "  default_queue_policy { max_queue_size: 40 }\n"
            "}\n"
            "parameters { key: \"threads\" value { string_value: \"2\" } }\n"
            "parameters { key: \"precision\" value { string_value: \"bf16\" } }\n");
}

TEST(AdviceTest, ValuesHaveWhatAReplicaNeeds) {
  // Four cores for passes, and one for 300 requests per second of 3 ms.
  const Resources resources = ResourcesOf(Made());
  EXPECT_EQ(resources.cores, 5);
  EXPECT_EQ(resources.target, 720) << "0.9 of the demand at which it still holds";
  // 1.3 times 512, 768 and 96 MiB, 128 MiB and the model, in steps of 256 MiB: more than the daemon held.
  EXPECT_EQ(resources.memory_bytes, int64_t{2048} << 20);
  EXPECT_EQ(ValuesText(Made()),
            "autoscaling:\n"
            "  enabled: true\n"
            "  minReplicas: 3\n"
            "  maxReplicas: 6\n"
            "  targetCPUUtilizationPercentage: 0\n"
            "  metrics:\n"
            "    - type: Pods\n"
            "      pods:\n"
            "        metric: {name: saccade_demand}\n"
            "        target: {type: AverageValue, averageValue: 720m}\n"
            "    - type: Pods\n"
            "      pods:\n"
            "        metric: {name: saccade_demand_of_busiest_model}\n"
            "        target: {type: AverageValue, averageValue: 720m}\n"
            "  keda:\n"
            "    threshold: 0.72\n"
            "resources:\n"
            "  requests: {cpu: \"5\", memory: 2048Mi}\n"
            "  limits: {cpu: \"5\", memory: 2048Mi}\n");
}

TEST(AdviceTest, MemoryIsForHealthAndDecodeWorkersToo) {
  Advice advice = Made();
  // 131.2 MiB are what is left of 2 GiB.
  advice.measurement.timing.model_bytes = int64_t{131} << 20;
  EXPECT_EQ(ResourcesOf(advice).memory_bytes, int64_t{2048} << 20);
  advice.measurement.timing.model_bytes = int64_t{132} << 20;
  EXPECT_EQ(ResourcesOf(advice).memory_bytes, int64_t{2304} << 20);
}

TEST(AdviceTest, MemoryGrowsWithTheDaemonAndTheQueue) {
  Advice advice = Made();
  advice.measurement.timing.resident_bytes = int64_t{4} << 30;
  EXPECT_EQ(ResourcesOf(advice).memory_bytes, int64_t{5376} << 20)
      << "5 GiB and 40 items, in steps of 256 MiB";
  EXPECT_EQ(MaxHeldItems(advice.measurement), 768);
  advice.measurement.item_bytes = 0;
  EXPECT_GT(MaxHeldItems(advice.measurement), int64_t{1} << 40);
}

TEST(AdviceTest, AGpuNeedsOneCoreAndItself) {
  Advice advice = Made();
  advice.measurement.timing.threads = 0;
  EXPECT_THAT(ConfigText(advice), AllOf(HasSubstr("kind: KIND_GPU"), Not(HasSubstr("threads"))));
  advice.many_precisions = false;
  EXPECT_THAT(ConfigText(advice), Not(HasSubstr("precision")));
  EXPECT_THAT(ValuesText(advice), HasSubstr("limits: {cpu: \"2\", memory: 2048Mi, nvidia.com/gpu: 1}"));
}

TEST(AdviceTest, WhatBreaksIsASentence) {
  Advice advice = Made();
  const auto text = [&](const char* what) {
    advice.breaking.what = what;
    return BreakingText(advice);
  };
  EXPECT_EQ(
      text("cores"),
      "holds up to 1000 requests per second; at 1020 the cores break first: the instances compute 97 % of "
      "the time, and use 4.9 cores together with decoding");
  EXPECT_THAT(text("queue"), HasSubstr("at 1020 the queue breaks first"));
  EXPECT_THAT(text("memory"), HasSubstr("fill 768 MiB (max-decoded-bytes)"));
  EXPECT_THAT(text("deadline"), HasSubstr("because they would be late"));
  EXPECT_THAT(text("bursts"), HasSubstr("wait for each other"));
}

TEST(AdviceTest, NotesSayWhatWasNotMeasured) {
  EXPECT_THAT(Notes(Made()), ElementsAre(HasSubstr("only passes with 2 threads were measured")));
  Advice advice = Made();
  advice.found.configuration.instances = 4;
  advice.measurement.timing.buckets[0].items = 5;
  advice.measurement.timing.buckets[0].largest = 1;
  advice.measurement.timing.buckets[0].deviation = 0.4;
  advice.measurement.decode = absl::ZeroDuration();
  EXPECT_THAT(
      Notes(advice),
      ElementsAre(HasSubstr("only passes"), HasSubstr("passes of 2 at a time were measured, and 4 may"),
                  HasSubstr("only 5 items"), HasSubstr("deviates by 40 %"), HasSubstr("no time of decoding"),
                  HasSubstr("larger ones are estimated")));
}

TEST(AdviceTest, ANoteSaysThatARecordingWasTooLong) {
  Advice advice = Made();
  advice.traffic.recorded = std::make_shared<std::vector<server::simulation::Arrival>>(4000);
  EXPECT_THAT(Notes(advice), ElementsAre(HasSubstr("only passes")));
  advice.found.estimate.replayed = 0.75;
  EXPECT_THAT(Notes(advice),
              ElementsAre(HasSubstr("only passes"),
                          AllOf(HasSubstr("the recording has 4000 requests, more than are simulated"),
                                HasSubstr("busiest stretch, 3000 requests in a row"))));
}

TEST(AdviceTest, ThePlotHasBothCurves) {
  Advice advice = Made();
  server::simulation::Estimate estimate;
  estimate.p99 = FromMilliseconds(12);
  estimate.goodput = 100;
  advice.curve = {{100, estimate}};
  estimate.p99 = server::simulation::kNever;
  advice.curve.emplace_back(200, estimate);
  const std::string plot = PlotText(advice);
  EXPECT_THAT(plot, AllOf(HasSubstr("<svg"), HasSubstr("p99 [ms]"), HasSubstr("goodput [1/s]"),
                          Not(HasSubstr("inf"))));
}

}  // namespace
}  // namespace saccade::client
