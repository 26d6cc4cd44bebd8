#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <streambuf>
#include <thread>

#include "absl/strings/str_split.h"
#include "client/cli/testing/run_with.h"
#include "client/cpp/testing/fake_daemon.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<Model> TwoModels() {
  Model ready;
  ready.name = "sanet";
  ready.version = 12;
  ready.state = ModelState::kReady;
  ready.queued = 3;
  Model broken;
  broken.name = "broken";
  broken.version = 1;
  broken.state = ModelState::kUnavailable;
  broken.reason = "tensor conv1.weight is missing";
  return {ready, broken};
}

// Statistics after `rounds` equal rounds.
ModelStatistics DoneAfter(int64_t rounds) {
  ModelStatistics done;
  done.model = "sanet";
  done.version = 12;
  done.answered = {rounds * 1000, rounds * absl::Seconds(20)};
  done.failed = {rounds * 2, rounds * absl::Seconds(1)};
  done.queue = {rounds * 1000, rounds * absl::Seconds(5)};
  done.infer = {rounds * 1000, rounds * absl::Seconds(12)};
  done.pictures = rounds * 1000;
  done.passes = rounds * 400;
  done.passes_by_batch_size = {{1, {rounds * 100, absl::Seconds(1)}}, {3, {rounds * 300, absl::Seconds(11)}}};
  return done;
}

// An output whose reader closes it after a number of lines.
class Reader : public std::streambuf {
 public:
  explicit Reader(int lines) : left_(lines) {}
  const std::string& text() const { return text_; }

 protected:
  int overflow(int c) override {
    if (left_ == 0) return traits_type::eof();
    text_.push_back(static_cast<char>(c));
    if (c == '\n') --left_;
    return c;
  }

 private:
  std::string text_;
  int left_;
};

// Returns what is written until the reader closes the output.
std::string Watch(std::vector<std::string> arguments, int lines, bool terminal = false) {
  Reader reader(lines);
  std::istringstream in;
  std::ostringstream err;
  std::ostream out(&reader);
  Console console{in, out, err};
  console.terminal = terminal;
  arguments.insert(arguments.begin(), "status");
  EXPECT_EQ(RunApp(std::move(arguments), console), 1);
  return reader.text();
}

TEST(Status, IsOkOnlyIfTheDaemonIsReady) {
  FakeDaemon daemon;
  daemon.SetModels(TwoModels());
  daemon.SetHealth("sanet", true);
  daemon.SetHealth("broken", false);
  daemon.SetStatistics([] { return std::vector{DoneAfter(2)}; });
  const RunResult ready = RunWith({"status", "--url", daemon.url()});
  EXPECT_EQ(ready.exit_code, 0);
  EXPECT_EQ(ready.out,
            daemon.url() +
                "  saccade 1.2.3  live  ready\n"
                "NAME    VERSION  STATE        HEALTH       WAITING  ANSWERED  FAILED  MEAN MS  QUEUE  "
                "INFER  BATCHES OF\n"
                "sanet        12  ready        serving            3     2,000       4     20.0    5.0   "
                "12.0  3 (75%) 1 (25%)\n"
                "broken        1  unavailable  not serving                                             "
                "                        tensor conv1.weight is missing\n");

  daemon.SetHealth("", false);
  const RunResult loading = RunWith({"status", "--json", "--url", daemon.url()});
  EXPECT_EQ(loading.exit_code, 78);
  const auto json = nlohmann::json::parse(loading.out);
  EXPECT_EQ(json["live"], true);
  EXPECT_EQ(json["ready"], false);
  EXPECT_EQ(json["server"]["version"], "1.2.3");
  const auto& sanet = json["models"][0];
  EXPECT_EQ(sanet["health"], "serving");
  EXPECT_EQ(sanet["queued"], 3);
  EXPECT_EQ(sanet["answered"], 2000);
  EXPECT_EQ(sanet["mean_batch_size"], 2.5);
  EXPECT_EQ(sanet["passes_by_batch_size"]["3"], 600);
  EXPECT_EQ(sanet["mean_ms"]["queue"], 5.0);
  EXPECT_FALSE(json["models"][1].contains("answered"));
}

TEST(Status, ShowsNoStatisticsWithoutRequests) {
  FakeDaemon daemon;
  daemon.SetModels({TwoModels()[1]});
  daemon.SetStatistics([] { return std::vector{ModelStatistics{.model = "broken", .version = 1}}; });
  EXPECT_EQ(RunWith({"status", "--url", daemon.url()}).out,
            daemon.url() +
                "  saccade 1.2.3  live  ready\n"
                "NAME    VERSION  STATE        HEALTH\n"
                "broken        1  unavailable  unknown  tensor conv1.weight is missing\n");
}

TEST(Status, SaysWhichVersionServesInTheBrokenOnesPlace) {
  std::vector<Model> models = TwoModels();
  models[0].name = models[1].name;
  models[1].version = 13;
  FakeDaemon daemon;
  daemon.SetModels(models);
  EXPECT_THAT(RunWith({"status", "--url", daemon.url()}).out,
              HasSubstr("version 12 serves in its place: tensor conv1.weight is missing"));
}

TEST(Status, WorksWithoutStatistics) {
  FakeDaemon daemon;
  daemon.SetModels(TwoModels());
  const RunResult run = RunWith({"status", "--json", "--url", daemon.url()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_FALSE(nlohmann::json::parse(run.out)["models"][0].contains("answered"));
}

TEST(Status, WatchShowsTheStatisticsOfTheInterval) {
  FakeDaemon daemon;
  daemon.SetModels({TwoModels()[0]});
  int64_t looks = 0;
  // Before the third round the model was reloaded.
  daemon.SetStatistics([&] { return std::vector{DoneAfter(++looks == 3 ? 1 : looks + 4)}; });
  const std::string text = Watch({"--json", "--watch", "0.02", "--url", daemon.url()}, 3);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u);
  const auto first = nlohmann::json::parse(lines[0]), second = nlohmann::json::parse(lines[1]),
             third = nlohmann::json::parse(lines[2]);
  EXPECT_EQ(first["models"][0]["answered"], 5000);
  EXPECT_FALSE(first.contains("interval_ms"));
  EXPECT_EQ(second["models"][0]["answered"], 1000);
  EXPECT_EQ(second["models"][0]["mean_ms"]["request"], 20.0);
  EXPECT_EQ(second["models"][0]["passes_by_batch_size"]["1"], 100);
  EXPECT_GE(second["interval_ms"], 20);
  EXPECT_NEAR(second["models"][0]["answered_per_second"].get<double>() * second["interval_ms"].get<double>(),
              1e6, 1e3);
  EXPECT_EQ(third["models"][0]["answered"], 1000);
}

TEST(Status, WatchReplacesTheTextOnATerminal) {
  FakeDaemon daemon;
  daemon.SetModels({TwoModels()[0]});
  daemon.SetStatistics([] { return std::vector{DoneAfter(1)}; });
  const std::string terminal = Watch({"--watch", "0.01", "--url", daemon.url()}, 6, true);
  EXPECT_THAT(terminal, StartsWith("\033[H\033[J" + daemon.url()));
  EXPECT_THAT(terminal, HasSubstr("\n\033[H\033[J" + daemon.url()));
  EXPECT_THAT(terminal, HasSubstr("ANSWERS/S"));
  const std::string elsewhere = Watch({"--watch", "0.01", "--url", daemon.url()}, 7);
  EXPECT_THAT(elsewhere, StartsWith(daemon.url()));
  EXPECT_THAT(elsewhere, HasSubstr("\n\n" + daemon.url()));
}

TEST(Status, WatchContinuesAfterAFailure) {
  FakeDaemon daemon;
  int looks = 0;
  daemon.SetStatistics([&]() -> absl::StatusOr<std::vector<ModelStatistics>> {
    if (++looks == 2) return absl::UnavailableError("draining");
    return std::vector{DoneAfter(looks)};
  });
  // The first status, the failed second attempt, and the third status.
  const std::string terminal = Watch({"--watch", "0.01", "--url", daemon.url()}, 5, true);
  EXPECT_THAT(terminal, HasSubstr("\033[H\033[Jdraining (UNAVAILABLE)\n\033[H\033[J" + daemon.url()));
}

TEST(Status, WaitsForTheDaemon) {
  FakeDaemon daemon;
  daemon.SetHealth("", false);
  std::thread turn_on([&] {
    daemon.AwaitWatcher();
    daemon.SetHealth("", true);
  });
  EXPECT_EQ(RunWith({"status", "--wait", "60", "--url", daemon.url()}).exit_code, 0);
  turn_on.join();
}

TEST(Status, DoesNotWaitForever) {
  FakeDaemon daemon;
  daemon.SetHealth("", false);
  const RunResult run = RunWith({"status", "--wait", "0.05", "--url", daemon.url()});
  EXPECT_EQ(run.exit_code, 78);
  EXPECT_THAT(run.err, HasSubstr("was not serving within 50ms: the daemon answers, and is not ready yet"));
}

TEST(Status, HasOneExitCodeWhetherOrNotItWaitedForADaemon) {
  std::string url;
  {
    FakeDaemon daemon;
    url = daemon.url();
  }
  EXPECT_EQ(RunWith({"status", "--url", url}).exit_code, 78);
  const RunResult waited = RunWith({"status", "--wait", "0.05", "--url", url});
  EXPECT_EQ(waited.exit_code, 78);
  EXPECT_THAT(waited.err, HasSubstr("no daemon answers at " + url + ": start one with saccaded"));
}

TEST(Status, DoesNotWaitIfItsTokenIsRefused) {
  FakeDaemon daemon;
  daemon.FailHealthWith(absl::UnauthenticatedError("unknown token"));
  const RunResult run = RunWith({"status", "--wait", "30", "--url", daemon.url()});
  EXPECT_EQ(run.exit_code, 80);
  EXPECT_EQ(run.err,
            "saccade: unknown token (UNAUTHENTICATED): give a valid token with --token-file or "
            "SACCADE_TOKEN\n");
}

}  // namespace
}  // namespace saccade::client
