#include "client/cli/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/cli/testing.h"
#include "client/testing/fake_daemon.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<Model> TwoModels() {
  Model ready;
  ready.name = "sanet";
  ready.version = 12;
  ready.state = ModelState::kReady;
  ready.architecture = "sanet";
  ready.task = "classification";
  ready.input_width = ready.input_height = 224;
  ready.classes = 1000;
  ready.max_batch_size = 8;
  ready.queued = 3;
  Model broken;
  broken.name = "broken";
  broken.version = 1;
  broken.state = ModelState::kUnavailable;
  broken.reason = "tensor conv1.weight is missing";
  return {ready, broken};
}

struct BadUsage {
  std::vector<std::string> arguments;
  std::string message;
};

class Usage : public ::testing::TestWithParam<BadUsage> {};

TEST_P(Usage, IsRefusedWithWhatIsWrong) {
  const RunResult run = RunWith(GetParam().arguments);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, Usage,
    ::testing::Values(BadUsage{{}, "Usage: saccade"}, BadUsage{{"--bogus"}, "--bogus"},
                      BadUsage{{"clasify"}, "clasify"}, BadUsage{{"classify", "-m", "x"}, "PICTURE"},
                      BadUsage{{"classify", "a.jpg"}, "--model"},
                      BadUsage{{"classify", "-m", "x", "a.jpg", "--top-k", "0"}, "--top-k"},
                      BadUsage{{"classify", "-m", "x", "a.jpg", "--priority", "101"}, "--priority"},
                      BadUsage{{"models", "--format", "xml"}, "xml"},
                      BadUsage{{"models", "--timeout", "0"}, "--timeout"},
                      BadUsage{{"models", "--url", "http://host:1"}, "expected HOST:PORT"},
                      BadUsage{{"models", "sanet"}, "sanet"}, BadUsage{{"params"}, "ARCHITECTURE"}));

TEST(App, TellsItsVersionAndHelp) {
  const RunResult version = RunWith({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, StartsWith("saccade "));
  const RunResult help = RunWith({"classify", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--top-k"));
  EXPECT_EQ(help.err, "");
}

TEST(App, TakesTheAddressFromTheEnvironmentUnlessTold) {
  FakeDaemon daemon;
  daemon.SetModels(TwoModels());
  setenv("SACCADE_URL", daemon.url().c_str(), 1);
  EXPECT_EQ(RunWith({"models"}).exit_code, 0);
  setenv("SACCADE_URL", "nowhere", 1);
  EXPECT_EQ(RunWith({"models"}).exit_code, 2);
  EXPECT_EQ(RunWith({"models", "--url", daemon.url()}).exit_code, 0);
  unsetenv("SACCADE_URL");
}

TEST(App, SaysHowToGetADaemon) {
  std::string url;
  {
    FakeDaemon daemon;
    url = daemon.url();
  }
  const RunResult run = RunWith({"models", "--url", url});
  EXPECT_EQ(run.exit_code, 78);
  EXPECT_EQ(run.err, "saccade: no daemon answers at " + url +
                         ": start one with saccaded --model-repository DIR, or name another with --url\n");
}

TEST(App, FailsWhenNobodyReadsItsOutput) {
  FakeDaemon daemon;
  daemon.SetModels(TwoModels());
  std::istringstream in;
  std::ostringstream err;
  std::ostream closed(nullptr);
  Console console{in, closed, err};
  EXPECT_EQ(RunApp({"models", "--url", daemon.url()}, console), 1);
  EXPECT_EQ(RunApp({"--help"}, console), 1);
}

TEST(Models, AreATable) {
  FakeDaemon daemon;
  daemon.SetModels(TwoModels());
  const RunResult run = RunWith({"models", "--url", daemon.url()});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.out,
            "NAME    VERSION  STATE        ARCHITECTURE    INPUT  CLASSES  BATCH  QUEUED\n"
            "sanet        12  ready        sanet         224x224     1000      8       3\n"
            "broken        1  unavailable                    0x0        0      0       0\n"
            "broken 1: tensor conv1.weight is missing\n");
}

TEST(Models, AreJson) {
  FakeDaemon daemon;
  daemon.SetModels(TwoModels());
  const auto json = nlohmann::json::parse(RunWith({"models", "--json", "--url", daemon.url()}).out);
  EXPECT_EQ(json["version"], 1);
  ASSERT_EQ(json["models"].size(), 2u);
  EXPECT_EQ(json["models"][0]["name"], "sanet");
  EXPECT_EQ(json["models"][0]["state"], "ready");
  EXPECT_EQ(json["models"][0]["input"]["width"], 224);
  EXPECT_EQ(json["models"][0]["queued"], 3);
  EXPECT_EQ(json["models"][1]["reason"], "tensor conv1.weight is missing");
}

TEST(Status, IsOkOnlyIfTheDaemonIsReady) {
  FakeDaemon daemon;
  daemon.SetModels(TwoModels());
  daemon.SetHealth("sanet", true);
  daemon.SetHealth("broken", false);
  const RunResult ready = RunWith({"status", "--url", daemon.url()});
  EXPECT_EQ(ready.exit_code, 0);
  EXPECT_EQ(ready.out, daemon.url() +
                           "  saccade 1.2.3  live  ready\n"
                           "NAME    VERSION  STATE        HEALTH\n"
                           "sanet        12  ready        serving\n"
                           "broken        1  unavailable  not serving  tensor conv1.weight is missing\n");

  daemon.SetHealth("", false);
  const RunResult loading = RunWith({"status", "--json", "--url", daemon.url()});
  EXPECT_EQ(loading.exit_code, 1);
  const auto json = nlohmann::json::parse(loading.out);
  EXPECT_EQ(json["live"], true);
  EXPECT_EQ(json["ready"], false);
  EXPECT_EQ(json["server"]["version"], "1.2.3");
  EXPECT_EQ(json["models"][0]["health"], "serving");
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
  EXPECT_EQ(run.exit_code, 68);
  EXPECT_THAT(run.err, HasSubstr("was not serving within 50ms"));
}

TEST(Params, CountsSanetAsItsPaperDoes) {
  const RunResult run = RunWith({"params", "sanet"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("3,449,408"));
  const auto json = nlohmann::json::parse(RunWith({"params", "sanet", "--json", "--layers"}).out);
  EXPECT_EQ(json["parameters"], 3449408);
  EXPECT_GT(json["parameters_in_full"], json["parameters"]);
  EXPECT_GT(json["attention"]["parameters_ratio"], 0.0);
  EXPECT_LT(json["attention"]["multiply_adds_ratio"], 1.0);
  int64_t parameters = 0;
  for (const auto& layer : json["layers"]) parameters += layer["parameters"].get<int64_t>();
  EXPECT_EQ(parameters, 3449408);
}

TEST(Params, ListsWhatIsKnown) {
  const RunResult run = RunWith({"params", "sannet"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("no architecture is called 'sannet'; there are: "));
  EXPECT_THAT(run.err, HasSubstr("sanet"));
}

TEST(Params, RefusesBadOptions) {
  EXPECT_EQ(RunWith({"params", "sanet", "--option", "bad=1"}).exit_code, 2);
  EXPECT_THAT(RunWith({"params", "sanet", "--option", "classes"}).err, HasSubstr("expected KEY=VALUE"));
}

}  // namespace
}  // namespace saccade::client
