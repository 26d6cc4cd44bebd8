#include "client/bench/overhead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/bench/bare_server.h"
#include "client/bench/report.h"
#include "client/cpp/testing/fake_daemon.h"
#include "client/load/unary_calls.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;

FakeDaemon::Predict AnswerWithTimings() {
  return [](const FakeRequest& request) -> absl::StatusOr<Classification> {
    if (request.model != "sanet") return absl::NotFoundError("no such model");
    Classification answer;
    answer.model = "sanet";
    answer.classes = {{1, "cat", 1.0f, 1.0f}};
    answer.timings.queue = absl::Microseconds(20);
    answer.timings.infer = absl::Microseconds(300);
    answer.timings.total = absl::Microseconds(350);
    return answer;
  };
}

// The bare server runs in this process, because a test could fork only too late.
class MeasureOverheadTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<Overhead>> Measure(const OverheadOptions& options) {
    return MeasureOverhead(options, [this](const std::string& predict, const std::string& live) {
      bare_ = std::make_unique<BareServer>(predict, live);
      return bare_->url();
    });
  }

  std::unique_ptr<BareServer> bare_;
};

TEST_F(MeasureOverheadTest, MeasuresBothServersAndReadsTheTimings) {
  FakeDaemon daemon;
  daemon.SetPredict(AnswerWithTimings());
  const OverheadOptions options{
      .url = daemon.url(), .model = "sanet", .duration_seconds = 0.02, .concurrency = {1, 3}, .rounds = 2};

  const auto results = Measure(options);

  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2u);
  for (const Overhead& result : *results) {
    for (const LoadResult* load :
         {&result.bare_predict, &result.daemon_predict, &result.bare_live, &result.daemon_live}) {
      // Each client makes at least one call per round, however slow the machine.
      EXPECT_GE(load->samples.size(), static_cast<size_t>(2 * result.clients));
      EXPECT_GE(load->elapsed, absl::Seconds(0.02));
    }
    EXPECT_EQ(result.daemon_predict.samples[0].timings.infer, absl::Microseconds(300));
    EXPECT_EQ(result.daemon_live.samples[0].timings.infer, absl::ZeroDuration());
  }
  const auto json = nlohmann::json::parse(ReportJson(options, *results));
  EXPECT_EQ(json["results"][1]["clients"], 3);
  EXPECT_EQ(json["results"][0]["stages"]["infer"]["p50_us"], 300.0);
  EXPECT_EQ(json["results"][0]["stages"]["daemon_total_less_infer"]["p99_us"], 50.0);
  EXPECT_EQ(json["results"][0]["daemon_predict"]["calls"], (*results)[0].daemon_predict.samples.size());
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  PrintReport(console, *results);
  EXPECT_THAT(out.str(), HasSubstr("3 clients, closed loop"));
}

TEST_F(MeasureOverheadTest, ReturnsTheDaemonsError) {
  FakeDaemon daemon;
  daemon.SetPredict(AnswerWithTimings());
  const auto results = Measure({.url = daemon.url(), .model = "nonesuch"});
  EXPECT_EQ(results.status().code(), absl::StatusCode::kNotFound);
}

TEST(BareServer, AnswersWithItsBytes) {
  const std::string answer = "\x0a\x05sanet";
  const BareServer server(answer, "");
  EXPECT_EQ(*CallOnce(server.url(), Method::kPredict, RawRequest("any", 2, 2)), answer);
}

}  // namespace
}  // namespace saccade::client
