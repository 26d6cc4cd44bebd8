#include "server/metrics/metrics.h"

#include <limits>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

RequestRecord Answered(int64_t pictures) {
  RequestRecord record;
  record.protocol = "grpc";
  record.computed = true;
  record.pictures = pictures;
  record.timings.decode = absl::Microseconds(100);
  record.timings.queue = absl::Microseconds(20);
  record.timings.infer = absl::Milliseconds(3);
  record.timings.total = absl::Microseconds(3200);
  record.timings.encode = absl::Microseconds(50);
  record.sizes.assign(static_cast<size_t>(pictures), SentItem{512, 512});
  return record;
}

RequestRecord Failed(absl::StatusCode code, bool computed) {
  RequestRecord record;
  record.protocol = "oip";
  record.code = code;
  record.computed = computed;
  record.timings.total = absl::Microseconds(10);
  return record;
}

// The value of the line for `series`; -1 if there is no such line.
double Value(const std::string& text, const std::string& series) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(series + " ", 0) == 0) return std::stod(line.substr(series.size()));
  }
  return -1;
}

TEST(MetricsTest, AnsweredRequestsAddUpUnderTritonsNames) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("sanet", 3, "classify");
  model->RecordRequest(Answered(2));
  model->RecordRequest(Answered(1));
  model->RecordBatch(3, absl::Milliseconds(6));
  const std::string text = metrics.Exposition();
  const std::string labels = "{model=\"sanet\",version=\"3\"}";
  EXPECT_EQ(Value(text, "nv_inference_request_success" + labels), 2);
  EXPECT_EQ(Value(text, "nv_inference_count" + labels), 3);
  EXPECT_EQ(Value(text, "nv_inference_exec_count" + labels), 1);
  EXPECT_EQ(Value(text, "nv_inference_request_duration_us" + labels), 6400);
  EXPECT_EQ(Value(text, "nv_inference_queue_duration_us" + labels), 40);
  EXPECT_EQ(Value(text, "nv_inference_compute_input_duration_us" + labels), 200);
  EXPECT_EQ(Value(text, "nv_inference_compute_infer_duration_us" + labels), 6000);
  EXPECT_EQ(Value(text, "nv_inference_compute_output_duration_us" + labels), 100);
  for (const char* reason : {"REJECTED", "CANCELED", "BACKEND", "OTHER"}) {
    EXPECT_EQ(Value(text, std::string("nv_inference_request_failure{model=\"sanet\",reason=\"") + reason +
                              "\",version=\"3\"}"),
              0);
  }
}

TEST(MetricsTest, FailuresAreCountedByReasonAndNotInDurations) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  model->RecordRequest(Failed(absl::StatusCode::kResourceExhausted, false));
  model->RecordRequest(Failed(absl::StatusCode::kDeadlineExceeded, false));
  model->RecordRequest(Failed(absl::StatusCode::kInternal, true));
  const std::string text = metrics.Exposition();
  EXPECT_EQ(Value(text, "nv_inference_request_failure{model=\"m\",reason=\"REJECTED\",version=\"1\"}"), 2);
  EXPECT_EQ(Value(text, "nv_inference_request_failure{model=\"m\",reason=\"BACKEND\",version=\"1\"}"), 1);
  EXPECT_EQ(Value(text, "nv_inference_request_success{model=\"m\",version=\"1\"}"), 0);
  EXPECT_EQ(Value(text, "nv_inference_request_duration_us{model=\"m\",version=\"1\"}"), 0);
  EXPECT_EQ(Value(text,
                  "saccade_requests_total{code=\"RESOURCE_EXHAUSTED\",model=\"m\",protocol=\"oip\",task="
                  "\"classify\",version=\"1\"}"),
            1);
  EXPECT_EQ(
      Value(text, "saccade_request_duration_seconds_count{model=\"m\",task=\"classify\",version=\"1\"}"), 3);
  // The request passed no stage.
  EXPECT_EQ(
      Value(text,
            "saccade_stage_duration_seconds_count{model=\"m\",stage=\"infer\",task=\"classify\",version="
            "\"1\"}"),
      0);
}

TEST(MetricsTest, HistogramsCountIntoTheirBuckets) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  model->RecordRequest(Answered(2));
  model->RecordBatch(3, absl::Milliseconds(6));
  model->RecordPadding(0);
  model->RecordPadding(0.25);
  const std::string text = metrics.Exposition();
  const auto stage = [&](const char* name, const char* le) {
    return Value(text, std::string("saccade_stage_duration_seconds_bucket{model=\"m\",stage=\"") + name +
                           "\",task=\"classify\",version=\"1\",le=\"" + le + "\"}");
  };
  EXPECT_EQ(stage("infer", "0.0025"), 0);
  EXPECT_EQ(stage("infer", "0.005"), 1);
  EXPECT_EQ(stage("decode", "0.0001"), 1);
  EXPECT_EQ(stage("queue", "60"), 1);
  EXPECT_EQ(stage("encode", "+Inf"), 1);
  EXPECT_EQ(Value(text, "saccade_batch_size_bucket{model=\"m\",version=\"1\",le=\"2\"}"), 0);
  EXPECT_EQ(Value(text, "saccade_batch_size_bucket{model=\"m\",version=\"1\",le=\"4\"}"), 1);
  EXPECT_EQ(Value(text, "saccade_padding_ratio_bucket{model=\"m\",version=\"1\",le=\"0\"}"), 1);
  EXPECT_EQ(Value(text, "saccade_padding_ratio_bucket{model=\"m\",version=\"1\",le=\"0.2\"}"), 1);
  EXPECT_EQ(Value(text, "saccade_padding_ratio_bucket{model=\"m\",version=\"1\",le=\"0.3\"}"), 2);
  EXPECT_EQ(Value(text, "saccade_image_pixels_bucket{model=\"m\",version=\"1\",le=\"65536\"}"), 0);
  EXPECT_EQ(Value(text, "saccade_image_pixels_count{model=\"m\",version=\"1\"}"), 2);
  EXPECT_EQ(Value(text, "saccade_image_pixels_sum{model=\"m\",version=\"1\"}"), 2 * 512 * 512);
}

TEST(MetricsTest, TensorsAreNotDecoded) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  RequestRecord record = Answered(1);
  record.sizes.clear();
  record.timings.decode = absl::ZeroDuration();
  record.timings.queue = absl::ZeroDuration();
  model->RecordRequest(record);
  const std::string text = metrics.Exposition();
  const std::string rest = ",task=\"classify\",version=\"1\"}";
  EXPECT_EQ(Value(text, "saccade_stage_duration_seconds_count{model=\"m\",stage=\"decode\"" + rest), 0);
  EXPECT_EQ(Value(text, "saccade_stage_duration_seconds_count{model=\"m\",stage=\"queue\"" + rest), 1);
}

TEST(MetricsTest, GaugesTellTheLastValue) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  model->SetPending(7);
  model->SetReady(true);
  model->SetLoadDuration(absl::Milliseconds(1500));
  metrics.SetInflight(2, 3000, 4000);
  const std::string text = metrics.Exposition();
  EXPECT_EQ(Value(text, "nv_inference_pending_request_count{model=\"m\",version=\"1\"}"), 7);
  EXPECT_EQ(Value(text, "saccade_queue_requests{model=\"m\",version=\"1\"}"), 7);
  EXPECT_EQ(Value(text, "saccade_model_ready{model=\"m\",version=\"1\"}"), 1);
  EXPECT_EQ(Value(text, "nv_model_load_duration_secs{model=\"m\",version=\"1\"}"), 1.5);
  EXPECT_EQ(Value(text, "saccade_model_load_duration_seconds{model=\"m\",version=\"1\"}"), 1.5);
  EXPECT_EQ(Value(text, "saccade_inflight_requests"), 2);
  EXPECT_EQ(Value(text, "saccade_inflight_bytes"), 3000);
  EXPECT_EQ(Value(text, "saccade_inflight_decoded_bytes"), 4000);
  EXPECT_EQ(Value(text, "saccade_build_info{version=\"0.1.0\"}"), 1);
}

TEST(MetricsTest, LostLogLinesAreCounters) {
  Metrics metrics("0.1.0");
  metrics.SetLostLogLines(3, 1);
  metrics.SetLostLogLines(5, 1);
  const std::string text = metrics.Exposition();
  EXPECT_EQ(Value(text, "saccade_log_lines_dropped_total{reason=\"queue_full\"}"), 5);
  EXPECT_EQ(Value(text, "saccade_log_lines_dropped_total{reason=\"write_failed\"}"), 1);
}

TEST(MetricsTest, EveryShedReasonHasASeries) {
  Metrics metrics("0.1.0");
  metrics.RecordShed(ShedReason::kQueueFull);
  metrics.RecordShed(ShedReason::kDraining);
  metrics.RecordShed(ShedReason::kDraining);
  const std::string text = metrics.Exposition();
  EXPECT_EQ(Value(text, "saccade_shed_total{reason=\"queue_full\"}"), 1);
  EXPECT_EQ(Value(text, "saccade_shed_total{reason=\"draining\"}"), 2);
  for (const char* reason :
       {"requests", "bytes", "decoded_bytes", "deadline", "cancelled", "model_bound", "client_rate",
        "predicted_late", "client_requests", "client_bytes", "client_decoded_bytes"}) {
    EXPECT_EQ(Value(text, std::string("saccade_shed_total{reason=\"") + reason + "\"}"), 0);
  }
}

// A client at its own bounds says nothing of the server's.
TEST(MetricsTest, WhatOneClientIsRefusedIsNoOverload) {
  Metrics metrics("0.1.0");
  metrics.SampleLoad(absl::UnixEpoch());
  for (const ShedReason reason : {ShedReason::kClientRate, ShedReason::kClientRequests,
                                  ShedReason::kClientBytes, ShedReason::kClientDecodedBytes}) {
    metrics.RecordUnknownModel("grpc", absl::StatusCode::kResourceExhausted);
    metrics.RecordShed(reason);
  }
  metrics.SampleLoad(absl::UnixEpoch() + absl::Seconds(1));
  EXPECT_EQ(metrics.load().overload_ratio, 0);
  metrics.RecordUnknownModel("grpc", absl::StatusCode::kResourceExhausted);
  metrics.RecordShed(ShedReason::kBytes);
  metrics.SampleLoad(absl::UnixEpoch() + absl::Seconds(2));
  EXPECT_GT(metrics.load().overload_ratio, 0);
}

TEST(MetricsTest, AClientCannotMakeSeries) {
  Metrics metrics("0.1.0");
  metrics.RecordUnknownModel("grpc", absl::StatusCode::kNotFound);
  metrics.RecordUnknownModel("grpc", absl::StatusCode::kNotFound);
  metrics.RecordUnknownModel("a protocol of my own", static_cast<absl::StatusCode>(4711));
  const std::string text = metrics.Exposition();
  EXPECT_EQ(Value(text,
                  "saccade_requests_total{code=\"NOT_FOUND\",model=\"\",protocol=\"grpc\",task=\"\",version="
                  "\"\"}"),
            2);
  EXPECT_EQ(Value(text,
                  "saccade_requests_total{code=\"UNKNOWN\",model=\"\",protocol=\"other\",task=\"\",version="
                  "\"\"}"),
            1);
  EXPECT_THAT(text, Not(HasSubstr("a protocol of my own")));
}

TEST(MetricsTest, TypesAreDeclared) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  model->RecordRequest(Answered(1));
  const std::string text = metrics.Exposition();
  for (const char* line : {"# TYPE nv_inference_request_success counter\n",
                           "# TYPE nv_inference_request_failure counter\n",
                           "# TYPE nv_inference_count counter\n",
                           "# TYPE nv_inference_exec_count counter\n",
                           "# TYPE nv_inference_request_duration_us counter\n",
                           "# TYPE nv_inference_queue_duration_us counter\n",
                           "# TYPE nv_inference_compute_input_duration_us counter\n",
                           "# TYPE nv_inference_compute_infer_duration_us counter\n",
                           "# TYPE nv_inference_compute_output_duration_us counter\n",
                           "# TYPE nv_inference_pending_request_count gauge\n",
                           "# TYPE nv_model_load_duration_secs gauge\n",
                           "# TYPE nv_cpu_utilization gauge\n",
                           "# TYPE nv_cpu_memory_total_bytes gauge\n",
                           "# TYPE nv_cpu_memory_used_bytes gauge\n",
                           "# TYPE saccade_requests_total counter\n",
                           "# TYPE saccade_request_duration_seconds histogram\n",
                           "# TYPE saccade_stage_duration_seconds histogram\n",
                           "# TYPE saccade_queue_requests gauge\n",
                           "# TYPE saccade_batch_size histogram\n",
                           "# TYPE saccade_image_pixels histogram\n",
                           "# TYPE saccade_model_ready gauge\n",
                           "# TYPE saccade_model_load_duration_seconds gauge\n",
                           "# TYPE saccade_shed_total counter\n",
                           "# TYPE saccade_inflight_requests gauge\n",
                           "# TYPE saccade_build_info gauge\n",
                           "# TYPE process_resident_memory_bytes gauge\n",
                           "# TYPE process_start_time_seconds gauge\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(MetricsTest, SeriesLeaveWithTheirLastHandle) {
  Metrics metrics("0.1.0");
  const std::string success = "nv_inference_request_success{model=\"m\",version=\"1\"}";
  auto old_model = metrics.ForModel("m", 1, "classify");
  old_model->RecordRequest(Answered(1));
  // A reload: the new handle continues the same series, whichever handle is destroyed first.
  auto new_model = metrics.ForModel("m", 1, "segment");
  old_model.reset();
  new_model->RecordRequest(Answered(1));
  EXPECT_EQ(Value(metrics.Exposition(), success), 2);
  EXPECT_THAT(metrics.Exposition(), Not(HasSubstr("classify")));
  new_model.reset();
  EXPECT_THAT(metrics.Exposition(), Not(HasSubstr("model=\"m\"")));
  EXPECT_EQ(Value((new_model = metrics.ForModel("m", 1, "segment"), metrics.Exposition()), success), 0);
}

TEST(MetricsTest, UsageTellsWhatTheMetricsTell) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  RequestRecord last = Answered(2);
  last.ended = absl::FromUnixSeconds(1000);
  model->RecordRequest(last);
  model->RecordRequest(Failed(absl::StatusCode::kInternal, true));
  model->RecordRequest(Failed(absl::StatusCode::kCancelled, false));
  model->RecordBatch(2, absl::Milliseconds(3));
  model->RecordBatch(1, absl::Milliseconds(2));
  model->RecordBatch(2, absl::Milliseconds(4));
  const ModelUsage usage = model->Usage();
  EXPECT_EQ(usage.success.count, 1u);
  EXPECT_EQ(usage.success.time, absl::Microseconds(3200));
  EXPECT_EQ(usage.fail.count, 2u);
  EXPECT_EQ(usage.fail.time, absl::Microseconds(20));
  EXPECT_EQ(usage.queue.time, absl::Microseconds(20));
  EXPECT_EQ(usage.input.time, absl::Microseconds(100));
  EXPECT_EQ(usage.infer.time, absl::Milliseconds(3));
  EXPECT_EQ(usage.output.time, absl::Microseconds(50));
  EXPECT_EQ(usage.output.count, 1u);
  EXPECT_EQ(usage.pictures, 2u);
  EXPECT_EQ(usage.passes, 3u);
  EXPECT_EQ(usage.last, absl::FromUnixSeconds(1000));
  EXPECT_THAT(usage.fail_by_reason,
              ElementsAre(Pair("REJECTED", 0), Pair("CANCELED", 1), Pair("BACKEND", 1), Pair("OTHER", 0)));
  // Only the answered request, of 3.2 ms.
  EXPECT_EQ(usage.answered_seconds.back(),
            std::make_pair(std::numeric_limits<double>::infinity(), uint64_t{1}));
  for (const auto& [bound, count] : usage.answered_seconds) {
    EXPECT_EQ(count, bound >= 0.0032 ? 1u : 0u) << bound;
  }
  ASSERT_EQ(usage.by_batch_size.size(), 2u);
  EXPECT_EQ(usage.by_batch_size[1].first, 2);
  EXPECT_EQ(usage.by_batch_size[1].second.count, 2u);
  EXPECT_EQ(usage.by_batch_size[1].second.time, absl::Milliseconds(7));
}

TEST(MetricsTest, UsageIsSharedByAVersionsHandlesAndGoesWithTheLast) {
  Metrics metrics("0.1.0");
  auto old_model = metrics.ForModel("m", 1, "classify");
  old_model->RecordRequest(Failed(absl::StatusCode::kCancelled, false));
  auto new_model = metrics.ForModel("m", 1, "classify");
  old_model.reset();
  EXPECT_EQ(new_model->Usage().fail.time, absl::Microseconds(10));
  EXPECT_EQ(new_model->Usage().fail.count, 1u);
  new_model.reset();
  EXPECT_EQ(metrics.ForModel("m", 1, "classify")->Usage().fail.time, absl::ZeroDuration());
}

TEST(MetricsTest, TheHookRunsAtEachScrape) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  int waiting = 0;
  metrics.SetScrapeHook([&] { model->SetPending(++waiting); });
  metrics.Exposition();
  EXPECT_EQ(Value(metrics.Exposition(), "saccade_queue_requests{model=\"m\",version=\"1\"}"), 2);
  metrics.SetScrapeHook(nullptr);
  metrics.Exposition();
  EXPECT_EQ(waiting, 2);
}

TEST(MetricsTest, AWrongRequestIsNoFailureOfTheModel) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  model->RecordRequest(Failed(absl::StatusCode::kInvalidArgument, false));
  EXPECT_EQ(model->Usage().fail.count, 0u);
  EXPECT_EQ(model->Usage().fail.time, absl::ZeroDuration());
  model->RecordRequest(Failed(absl::StatusCode::kInvalidArgument, true));
  EXPECT_EQ(model->Usage().fail.count, 0u) << "only the pass could tell that it was wrong";
  EXPECT_THAT(metrics.Exposition(), Not(HasSubstr("reason=\"OTHER\",version=\"1\"} 1")));
}

TEST(MetricsTest, AModelThatWasNeverAskedHasNoHistograms) {
  Metrics metrics("0.1.0");
  const auto unasked = metrics.ForModel("m", 1, "classify");
  const auto asked = metrics.ForModel("m", 2, "classify");
  asked->RecordRequest(Failed(absl::StatusCode::kInternal, true));
  const std::string text = metrics.Exposition();
  for (const char* name :
       {"saccade_request_duration_seconds_bucket{le=\"+Inf\",model=\"m\",task=\"classify\",",
        "saccade_batch_size_bucket{le=\"+Inf\",model=\"m\","}) {
    EXPECT_EQ(Value(text, absl::StrCat(name, "version=\"1\"}")), -1) << name;
  }
  EXPECT_EQ(Value(text, "saccade_batch_size_count{model=\"m\",version=\"2\"}"), 0) << "written, though empty";
  EXPECT_EQ(Value(text, "nv_inference_request_success{model=\"m\",version=\"1\"}"), 0);
  unasked->RecordBatch(2, absl::Milliseconds(1));
  EXPECT_EQ(Value(metrics.Exposition(), "saccade_batch_size_count{model=\"m\",version=\"1\"}"), 1);
}

TEST(MetricsTest, WhatWasKeptIsAnsweredButNotComputed) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  RequestRecord hit;
  hit.protocol = "oip";
  hit.timings.total = absl::Microseconds(30);
  model->RecordRequest(hit);
  const std::string text = metrics.Exposition();
  const std::string labels = "{model=\"m\",version=\"1\"}";
  EXPECT_EQ(Value(text, "nv_inference_request_success" + labels), 1);
  EXPECT_EQ(Value(text, "nv_inference_count" + labels), 0);
  EXPECT_EQ(Value(text, "nv_inference_request_duration_us" + labels), 30);
  for (const char* stage : {"decode", "queue", "infer", "encode"}) {
    EXPECT_EQ(Value(text, absl::StrCat("saccade_stage_duration_seconds_count{model=\"m\",stage=\"", stage,
                                       "\",task=\"classify\",version=\"1\"}")),
              0)
        << stage;
  }
}

TEST(MetricsTest, ACertificatesEndIsToldWhereThereIsOne) {
  Metrics metrics("0.1.0");
  EXPECT_THAT(metrics.Exposition(), Not(HasSubstr("certificate")));
  metrics.SetCertificateExpiry(absl::FromUnixSeconds(1'800'000'000));
  EXPECT_EQ(Value(metrics.Exposition(), "saccade_certificate_expiry_timestamp_seconds"), 1.8e9);
}

TEST(MetricsTest, TheCacheCountsUnderTritonsNames) {
  Metrics metrics("0.1.0");
  EXPECT_THAT(metrics.Exposition(), Not(HasSubstr("cache")));
  auto cache = metrics.ForCacheOf("m", 2);
  cache->RecordHit(absl::Microseconds(3));
  cache->RecordHit(absl::Microseconds(4));
  cache->RecordMiss(absl::Microseconds(50));
  metrics.SetCached(4096, 2);
  const std::string text = metrics.Exposition();
  const std::string labels = "{model=\"m\",version=\"2\"}";
  EXPECT_EQ(Value(text, "nv_cache_num_hits_per_model" + labels), 2);
  EXPECT_EQ(Value(text, "nv_cache_num_misses_per_model" + labels), 1);
  EXPECT_EQ(Value(text, "nv_cache_hit_duration_per_model" + labels), 7);
  EXPECT_EQ(Value(text, "nv_cache_miss_duration_per_model" + labels), 50);
  EXPECT_EQ(Value(text, "saccade_response_cache_bytes"), 4096);
  EXPECT_EQ(Value(text, "saccade_response_cache_answers"), 2);
  const CacheTotals totals = cache->totals();
  EXPECT_EQ(totals.hits, 2);
  EXPECT_EQ(totals.misses, 1);
  EXPECT_EQ(totals.hit_time, absl::Microseconds(7));
  EXPECT_EQ(totals.miss_time, absl::Microseconds(50));
  cache.reset();
  EXPECT_THAT(metrics.Exposition(), Not(HasSubstr("nv_cache")));
}

TEST(MetricsTest, TheFrontIsCountedByReasonAndPort) {
  Metrics metrics("0.1.0");
  EXPECT_THAT(metrics.Exposition(), Not(HasSubstr("saccade_front")));
  auto front = metrics.ForFront({"resets", "streams"}, {"grpc", "http"});
  front->RecordRefusal(1);
  front->RecordRefusal(1);
  front->SetConnections(0, 7);
  front->SetConnections(1, 2);
  front->SetOpenRequests(3);
  const std::string text = metrics.Exposition();
  EXPECT_EQ(Value(text, "saccade_front_refusals_total{reason=\"resets\"}"), 0) << "shown from the start";
  EXPECT_EQ(Value(text, "saccade_front_refusals_total{reason=\"streams\"}"), 2);
  EXPECT_EQ(Value(text, "saccade_front_connections{port=\"grpc\"}"), 7);
  EXPECT_EQ(Value(text, "saccade_front_connections{port=\"http\"}"), 2);
  EXPECT_EQ(Value(text, "saccade_front_requests_open"), 3);
  front.reset();
  EXPECT_THAT(metrics.Exposition(), Not(HasSubstr("saccade_front")));
}

TEST(MetricsTest, ManyThreadsLoseNothing) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        model->RecordRequest(i % 2 == 0 ? Answered(1) : Failed(absl::StatusCode::kUnavailable, false));
        model->RecordBatch(1, absl::Milliseconds(1));
        metrics.ForModel("m", 2, "classify")->RecordBatch(1, absl::Milliseconds(1));
        if (i % 100 == 0) metrics.Exposition();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = metrics.Exposition();
  const std::string labels = "{model=\"m\",version=\"1\"}";
  EXPECT_EQ(Value(text, "nv_inference_request_success" + labels), kThreads * kEach / 2);
  EXPECT_EQ(Value(text, "nv_inference_exec_count" + labels), kThreads * kEach);
  EXPECT_EQ(
      Value(text,
            "saccade_requests_total{code=\"UNAVAILABLE\",model=\"m\",protocol=\"oip\",task=\"classify\","
            "version=\"1\"}"),
      kThreads * kEach / 2);
}

}  // namespace
}  // namespace saccade::server
