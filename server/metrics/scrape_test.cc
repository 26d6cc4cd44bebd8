// Scrapes while requests are recorded: recording never waits for a scrape.
#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/exposition.h"
#include "server/metrics/metrics.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Far longer than any step takes; only a deadlock waits for so long.
constexpr absl::Duration kForEver = absl::Seconds(60);

RequestRecord Answered(absl::StatusCode code = absl::StatusCode::kOk) {
  RequestRecord record;
  record.protocol = "grpc";
  record.code = code;
  record.timings.total = absl::Milliseconds(3);
  record.ended = absl::FromUnixSeconds(1'700'000'000);
  return record;
}

RequestRecord Sampled() {
  RequestRecord record = Answered();
  record.sampled = {{1, 2}, 3};
  return record;
}

TEST(ScrapeTest, CountingDoesNotWaitForAScrapeThatHasBegun) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  absl::Notification begun;
  absl::Notification counted;
  bool in_time = false;
  metrics.SetScrapeHook([&] {
    begun.Notify();
    in_time = counted.WaitForNotificationWithTimeout(kForEver);
  });
  std::string page;
  std::thread scraper([&] { page = metrics.Exposition(ExpositionFormat::kOpenMetrics); });
  begun.WaitForNotification();
  model->RecordRequest(Sampled());
  // The first request with this status, which creates a series.
  model->RecordRequest(Answered(absl::StatusCode::kUnavailable));
  model->RecordBatch(1, absl::Milliseconds(1));
  model->SetPending(1);
  metrics.RecordUnknownModel("grpc", absl::StatusCode::kNotFound);
  metrics.RecordShed(ShedReason::kQueueFull);
  metrics.SetInflight(1, 2, 3);
  const auto other = metrics.ForModel("other", 1, "classify");
  counted.Notify();
  scraper.join();
  EXPECT_TRUE(in_time);
  // Events recorded before the scrape collected are included.
  EXPECT_THAT(
      page,
      HasSubstr("saccade_request_duration_seconds_count{model=\"m\",task=\"classify\",version=\"1\"} 2\n"));
}

// Rendering takes the longest part of a scrape. It works on copies, so it runs here without holding the
// metrics, and even after they were destroyed.
TEST(ScrapeTest, APageIsMadeOfCopies) {
  auto metrics = std::make_unique<Metrics>("0.1.0");
  auto model = metrics->ForModel("m", 1, "classify");
  model->RecordRequest(Sampled());
  const Scraped scraped = metrics->Scrape();
  const std::string before = Render(scraped, ExpositionFormat::kOpenMetrics);
  model->RecordRequest(Sampled());
  EXPECT_EQ(Render(scraped, ExpositionFormat::kOpenMetrics), before);
  model.reset();
  metrics.reset();
  EXPECT_EQ(Render(scraped, ExpositionFormat::kOpenMetrics), before);
}

TEST(ScrapeTest, OnlySampledRequestsAreExemplars) {
  Metrics metrics("0.1.0");
  const auto model = metrics.ForModel("m", 1, "classify");
  model->RecordRequest(Answered());
  EXPECT_THAT(metrics.Exposition(ExpositionFormat::kOpenMetrics), Not(HasSubstr(" # {")));
  model->RecordRequest(Sampled());
  const std::string labels = "{model=\"m\",task=\"classify\",version=\"1\",le=\"0.005\"} 2";
  EXPECT_THAT(
      metrics.Exposition(ExpositionFormat::kOpenMetrics),
      HasSubstr("saccade_request_duration_seconds_bucket" + labels +
                " # {trace_id=\"00000000000000010000000000000002\",span_id=\"0000000000000003\"} 0.003 "
                "1700000000.000\n"));
  EXPECT_THAT(metrics.Exposition(), HasSubstr("saccade_request_duration_seconds_bucket" + labels + "\n"));
}

}  // namespace
}  // namespace saccade::server
