#include "client/cli/commands/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/testing/command_test.h"

namespace saccade::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Two cores; a pass over b items takes 8 + 2 b milliseconds.
Model Net() {
  Model model;
  model.name = "net";
  model.version = 1;
  model.state = ModelState::kReady;
  model.precision = "fp32";
  model.input_width = model.input_height = 64;
  model.timing = ModelTiming{.buckets = {{.id = 5,
                                          .name = "64x64",
                                          .items = 1000,
                                          .passes = {},
                                          .smallest = 1,
                                          .largest = 8,
                                          .deviation = 0.05}},
                             .instances = 1,
                             .threads = 1,
                             .cores = 2,
                             .max_queue_size = 256,
                             .model_bytes = 1 << 20,
                             .resident_bytes = 300 << 20};
  for (int size = 1; size <= 8; ++size)
    model.timing->buckets[0].passes.push_back(absl::Milliseconds(8 + 2 * size));
  return model;
}

class TuneTest : public CommandTest {
 protected:
  TuneTest() {
    daemon_.SetModels({Net()});
    daemon_.SetStatistics([] {
      ModelStatistics statistics;
      statistics.model = "net";
      statistics.version = 1;
      statistics.decode = {.count = 10, .time = absl::Milliseconds(5)};
      return std::vector<ModelStatistics>{statistics};
    });
  }

  RunResult Tune(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"tune", "net", "--url", daemon_.url()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunWith(all);
  }
};

TEST_F(TuneTest, PrintsAndWritesAConfiguration) {
  const RunResult run = Tune({"--p99", "60ms", "--rate", "100", "-o", folder_ / "out"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("net: 100 requests per second, 99 of 100 within 60 ms\n"),
                    HasSubstr("replicas       1\n"), HasSubstr("instances      1 with 1 thread each\n"),
                    HasSubstr("It holds up to "), HasSubstr("# values.yaml\nautoscaling:\n")));
  const std::string config = Read(folder_ / "out" / "config.pbtxt");
  EXPECT_THAT(config,
              AllOf(HasSubstr("# saccade tune net --p99 60ms --rate 100\n"), HasSubstr("max_batch_size: ")));
  EXPECT_THAT(Read(folder_ / "out" / "values.yaml"), HasSubstr("minReplicas: 1\n"));
  EXPECT_THAT(Read(folder_ / "out" / "plot.svg"), HasSubstr("</svg>"));
}

TEST_F(TuneTest, AHigherRateTakesMore) {
  int before = 0;
  for (const char* rate : {"50", "300", "900"}) {
    const RunResult run = Tune({"--p99", "60ms", "--rate", rate, "--json"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    EXPECT_LE(json["estimate"]["p99_ms"], 60.0);
    EXPECT_GE(json["breaks"]["holds_rate"], json["rate"]);
    const int instances =
        json["configuration"]["replicas"].get<int>() * json["configuration"]["instances"].get<int>();
    EXPECT_GT(instances, before);
    before = instances;
  }
}

TEST_F(TuneTest, ImpossibleWishesAreRefusedWithAReason) {
  const RunResult fast = Tune({"--p99", "9ms", "--rate", "1"});
  EXPECT_EQ(fast.exit_code, 1);
  EXPECT_EQ(fast.out, "");
  EXPECT_THAT(fast.err,
              AllOf(HasSubstr("one request alone takes 1"), HasSubstr("expected --p99 of more than 1")));
  const RunResult much = Tune({"--p99", "60ms", "--rate", "100000"});
  EXPECT_EQ(much.exit_code, 1);
  EXPECT_THAT(much.err, HasSubstr("100 replicas do not hold 100000 requests per second"));
}

TEST_F(TuneTest, SaysHowToGetLatencies) {
  Model fresh = Net();
  fresh.timing->buckets.clear();
  daemon_.SetModels({fresh});
  const RunResult run = Tune({"--p99", "60ms", "--rate", "1"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("has not measured a pass of model 'net' yet"));
  Model old = Net();
  old.timing.reset();
  daemon_.SetModels({old});
  EXPECT_THAT(Tune({"--p99", "60ms", "--rate", "1"}).err, HasSubstr("older than this program"));
  Model loading = Net();
  loading.state = ModelState::kLoading;
  daemon_.SetModels({loading});
  EXPECT_THAT(Tune({"--p99", "60ms", "--rate", "1"}).err, HasSubstr("model 'net' is not ready"));
}

TEST_F(TuneTest, UnknownModelsAndDaemonsFail) {
  const RunResult unknown =
      RunWith({"tune", "nonesuch", "--url", daemon_.url(), "--p99", "1s", "--rate", "1"});
  EXPECT_EQ(unknown.exit_code, 69);
  EXPECT_THAT(unknown.err, HasSubstr("no model 'nonesuch'"));
  const RunResult nobody = RunWith({"tune", "net", "--url", "127.0.0.1:1", "--p99", "1s", "--rate", "1"});
  EXPECT_EQ(nobody.exit_code, 78);
}

TEST_F(TuneTest, SavedLatenciesNeedNoDaemon) {
  const std::string saved = folder_ / "fp32.json";
  EXPECT_EQ(Tune({"--save", saved}).exit_code, 0);
  Model quick = Net();
  quick.precision = "bf16";
  for (absl::Duration& pass : quick.timing->buckets[0].passes) pass /= 2;
  daemon_.SetModels({quick});
  const std::string other = folder_ / "bf16.json";
  EXPECT_EQ(Tune({"--save", other, "-q"}).err, "");
  const RunResult run = RunWith({"tune", "net", "--url", "127.0.0.1:1", "--latencies", saved, "--latencies",
                                 other, "--p99", "60ms", "--rate", "320", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["configuration"]["precision"], "bf16") << "one instance of it suffices";
  EXPECT_EQ(json["configuration"]["instances"], 1);
  EXPECT_THAT(RunWith({"tune", "other", "--latencies", saved, "--p99", "1s", "--rate", "1"}).err,
              HasSubstr("fp32.json: is of model 'net'; expected 'other'"));
  const RunResult damaged =
      RunWith({"tune", "net", "--latencies", File("damaged", "{"), "--p99", "1s", "--rate", "1"});
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_THAT(damaged.err, HasSubstr("damaged: is not JSON of saccade tune --save"));
  EXPECT_THAT(RunWith({"tune", "net", "--latencies", folder_ / "none", "--p99", "1s", "--rate", "1"}).err,
              HasSubstr("none: cannot be read"));
}

TEST_F(TuneTest, RecordedTrafficSetsTheRate) {
  std::string lines = "# a recording\n";
  for (int i = 0; i <= 200; ++i) lines += std::to_string(i * 0.025) + " 64x64\n";
  const std::string recording = File("traffic", lines);
  const auto json = nlohmann::json::parse(Tune({"--p99", "60ms", "--traffic", recording, "--json"}).out);
  EXPECT_NEAR(json["rate"].get<double>(), 40, 0.01);
  EXPECT_LT(json["estimate"]["p99_ms"].get<double>() - json["estimate"]["p50_ms"].get<double>(), 3.0)
      << "even arrivals never wait";
  const RunResult damaged = Tune({"--p99", "60ms", "--traffic", File("damaged", "0\n1\nx\n")});
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_THAT(damaged.err, HasSubstr("damaged: line 3 is 'x'; expected SECONDS [BUCKET]"));
}

TEST_F(TuneTest, WrongOptionsAreUsageErrors) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{},
                                             {"--p99", "60ms"},
                                             {"--rate", "1"},
                                             {"--p99", "soon", "--rate", "1"},
                                             {"--p99", "-1s", "--rate", "1"},
                                             {"--p99", "60ms", "--rate", "0"},
                                             {"--p99", "60ms", "--rate", "1", "--mix", "32x32=1"},
                                             {"--p99", "60ms", "--rate", "1", "--mix", "64x64=0"},
                                             {"--p99", "60ms", "--rate", "1", "--mix", "64x64=nan"},
                                             {"--p99", "60ms", "--rate", "1", "--burstiness", "-1"},
                                             {"--p99", "60ms", "--rate", "1", "--max-replicas", "0"}}) {
    const RunResult run = Tune(wrong);
    EXPECT_EQ(run.exit_code, 2) << testing::PrintToString(wrong) << run.err;
    EXPECT_EQ(run.out, "");
  }
}

}  // namespace
}  // namespace saccade::client
