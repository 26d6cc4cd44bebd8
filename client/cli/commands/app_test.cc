#include "client/cli/commands/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "client/cli/testing/run_with.h"
#include "client/cpp/testing/fake_daemon.h"

namespace saccade::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
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

Model Stereo() {
  Model model;
  model.name = "depth";
  model.version = 1;
  model.state = ModelState::kReady;
  model.architecture = "ea_psmnet";
  model.task = "stereo";
  model.input_width = 1248;
  model.input_height = 384;
  model.buckets = "stride:16";
  model.views = 2;
  model.max_batch_size = 4;
  return model;
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
    ::testing::Values(
        BadUsage{{}, "Usage: saccade"}, BadUsage{{"--bogus"}, "--bogus is no flag of saccade"},
        BadUsage{{"clasify"}, "'clasify' is no command of saccade; did you mean classify?"},
        BadUsage{{"clasify", "--model", "x", "a.jpg"},
                 "'clasify' is no command of saccade; did you mean classify?"},
        BadUsage{{"detect", "--modle", "x", "a.jpg"},
                 "--modle is no flag of saccade detect; did you mean --model?"},
        BadUsage{{"detect"}, "saccade: PICTURE is missing; saccade detect --help lists the flags"},
        BadUsage{{"models", "word"}, "saccade models takes no further argument, but got 'word'"},
        BadUsage{{"status", "--wait"}, "--wait needs a value: Seconds to wait until it is ready"},
        BadUsage{{"classify", "-m", "x", "a.jpg", "--top-k", "a"},
                 "--top-k is 'a'; expected a number from 1 to 1000; saccade classify --help"},
        BadUsage{{"models", "--timeout", "0"}, "--timeout is '0'; expected a number from 0.001 to 86400;"},
        BadUsage{{"bench", "-m", "x", "a.jpg", "--seed", "-1"},
                 "--seed is '-1'; expected a number of at least 0;"},
        BadUsage{{"models", "--format", "xml"}, "--format is 'xml'; expected text or json;"},
        BadUsage{{"classify", "-m", "x", "-m", "y", "a.jpg"}, "--model is given 2 times; expected it once;"},
        BadUsage{{"classify", "-m", "x"}, "PICTURE"}, BadUsage{{"classify", "a.jpg"}, "--model"},
        BadUsage{{"classify", "-m", "x", "a.jpg", "--top-k", "0"}, "--top-k"},
        BadUsage{{"classify", "-m", "x", "a.jpg", "--priority", "101"}, "--priority"},
        BadUsage{{"classify", "-m", "x", "a.jpg", "--format", "coco"}, "coco"},
        BadUsage{{"detect", "-m", "x", "a.jpg", "--score-threshold", "1.5"}, "--score-threshold"},
        BadUsage{{"detect", "-m", "x", "a.jpg", "--top-k", "-1"}, "--top-k"},
        BadUsage{{"detect", "-m", "x", "a.jpg", "--no-masks", "--mask-threshold", "0.5"}, "excludes"},
        BadUsage{{"detect", "-m", "x"}, "PICTURE"}, BadUsage{{"segment", "a.jpg"}, "--model"},
        BadUsage{{"stereo", "-m", "x"}, "LEFT_RIGHT"},
        BadUsage{{"stereo", "-m", "x", "a.png", "b.png", "c.png"}, "c.png has no right picture"},
        BadUsage{{"stereo", "-m", "x", "a.png", "b.png", "--pfm"}, "--output"},
        BadUsage{{"depth", "-m", "x"}, "PICTURE"}, BadUsage{{"depth", "a.jpg"}, "--model"},
        BadUsage{{"depth", "-m", "x", "a.jpg", "--size", "5x5"}, "--output"},
        BadUsage{{"embed", "-m", "x"}, "PICTURE"}, BadUsage{{"embed", "a.jpg"}, "--model"},
        BadUsage{{"actions", "-m", "x"}, "CLIP"},
        BadUsage{{"actions", "-m", "x", "a.mp4", "--fps", "10"}, "--frames"},
        BadUsage{{"actions", "-m", "x", "a.png", "--frames", "--fps", "0"}, "--fps"},
        BadUsage{{"actions", "-m", "x", "a.png", "--frames", "--fps", "1001"}, "--fps"},
        BadUsage{{"actions", "-m", "x", "a.mp4", "--score-threshold", "1.5"}, "--score-threshold"},
        BadUsage{{"actions", "-m", "x", "-", "-"}, "given more than once"},
        BadUsage{{"restore", "-m", "x", "-o", "out"}, "VOLUME"},
        BadUsage{{"restore", "-m", "x", "a.tif"}, "--output"},
        BadUsage{{"restore", "a.tif", "-o", "out"}, "--model"},
        BadUsage{{"restore", "-m", "x", "a.raw", "-o", "out", "--shape", "1x2x3"}, "--type"},
        BadUsage{{"restore", "-m", "x", "a.raw", "-o", "out", "--type", "uint8"}, "--shape"},
        BadUsage{{"restore", "-m", "x", "a.raw", "-o", "out", "--type", "int8", "--shape", "1x2x3"}, "int8"},
        BadUsage{{"restore", "-m", "x", "a.raw", "-o", "out", "--type", "uint8", "--shape", "1x2"},
                 "'1x2' is not a shape"},
        BadUsage{{"restore", "-m", "x", "a.tif", "-o", "out", "--output-type", "double"}, "double"},
        BadUsage{{"models", "--format", "xml"}, "xml"}, BadUsage{{"models", "--timeout", "0"}, "--timeout"},
        BadUsage{{"models", "--url", "http://host:1"}, "expected HOST:PORT"},
        BadUsage{{"models", "--token", "secret"}, "--token"},
        BadUsage{{"status", "--watch", "never"}, "never is not a valid interval"},
        BadUsage{{"status", "--watch", "0"}, "0 is not a valid interval"},
        BadUsage{{"models", "sanet"}, "sanet"}, BadUsage{{"params"}, "ARCHITECTURE"}));

TEST(App, PrintsItsVersionAndHelp) {
  const RunResult version = RunWith({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, StartsWith("saccade "));
  const RunResult help = RunWith({"classify", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--top-k"));
  EXPECT_EQ(help.err, "");
}

TEST(App, TakesTheAddressFromTheEnvironmentWithoutUrl) {
  FakeDaemon daemon;
  daemon.SetModels(TwoModels());
  setenv("SACCADE_URL", daemon.url().c_str(), 1);
  EXPECT_EQ(RunWith({"models"}).exit_code, 0);
  setenv("SACCADE_URL", "nowhere", 1);
  EXPECT_EQ(RunWith({"models"}).exit_code, 2);
  EXPECT_EQ(RunWith({"models", "--url", daemon.url()}).exit_code, 0);
  unsetenv("SACCADE_URL");
}

TEST(App, AdvisesToStartADaemon) {
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

TEST(App, SaysHowToInstallACommandThatIsAProgramOfItsOwn) {
  const char* path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  setenv("PATH", "/nowhere", 1);
  const auto bulk = RunWith({"bulk", "folder"});
  const auto evaluate = RunWith({"evaluate", "folder"});
  const auto imported = RunWith({"import", "torchvision:resnet18"});
  const auto verified = RunWith({"verify", "folder"});
  const auto replay = RunWith({"replay", "folder"});
  const auto prove = RunWith({"prove", "answer"});
  const auto quantize = RunWith({"quantize", "--help"});
  setenv("PATH", before.c_str(), 1);
  EXPECT_EQ(bulk.exit_code, 1);
  // The project publishes it in no registry, so `pip install saccade` could install a stranger's package.
  const std::string how =
      " is not in PATH; it comes with the Python package. In a checkout of Saccade: "
      "python3 -m venv .venv && .venv/bin/pip install ";
  const std::string path_set = " && export PATH=$PWD/.venv/bin:$PATH\n";
  EXPECT_THAT(bulk.err, HasSubstr("saccade-bulk" + how + "'./client/python[bulk]'" + path_set));
  EXPECT_THAT(evaluate.err, HasSubstr("saccade-evaluate" + how + "'./client/python[evaluate]'" + path_set));
  EXPECT_THAT(imported.err, HasSubstr("saccade-import" + how + "'./client/python[import]'" + path_set));
  EXPECT_THAT(verified.err, HasSubstr("saccade-verify" + how + "'./client/python[import]'" + path_set));
  EXPECT_THAT(replay.err, HasSubstr("saccade-replay" + how + "./client/python" + path_set));
  EXPECT_THAT(prove.err, HasSubstr("saccade-prove" + how + "./client/python" + path_set));
  EXPECT_EQ(quantize.exit_code, 1);
  EXPECT_THAT(quantize.err, HasSubstr("saccade-quantize is neither beside saccade nor in PATH"));
}

TEST(App, FailsIfItsOutputIsClosed) {
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
            "NAME    VERSION  STATE        TASK            ARCHITECTURE    INPUT  CLASSES  BATCH  QUEUED\n"
            "sanet        12  ready        classification  sanet         224x224     1000      8       3\n"
            "broken        1  unavailable                                      -        -      0       0\n"
            "broken 1: tensor conv1.weight is missing\n");
}

TEST(Models, ShowBucketsAndViews) {
  FakeDaemon daemon;
  daemon.SetModels({TwoModels()[0], Stereo()});
  EXPECT_EQ(RunWith({"models", "--url", daemon.url()}).out,
            "NAME   VERSION  STATE  TASK            ARCHITECTURE              INPUT  CLASSES  BATCH  QUEUED  "
            "BUCKETS\n"
            "sanet       12  ready  classification  sanet                   224x224     1000      8       3\n"
            "depth        1  ready  stereo          ea_psmnet     up to 2x 1248x384        -      4       0  "
            "stride:16\n");
  const auto json = nlohmann::json::parse(RunWith({"models", "--json", "--url", daemon.url()}).out);
  EXPECT_EQ(json["models"][0]["buckets"], "");
  EXPECT_EQ(json["models"][1]["buckets"], "stride:16");
  EXPECT_EQ(json["models"][1]["views"], 2);
  EXPECT_EQ(json["models"][1]["task"], "stereo");
}

TEST(Models, ShowTheLimitsOfClipsAndVolumes) {
  Model clips = TwoModels()[0];
  clips.name = "tal";
  clips.task = "actions";
  clips.input_width = clips.input_height = 96;
  clips.max_frames = 768;
  clips.frames_per_second = 12.5;
  Model volumes = TwoModels()[0];
  volumes.name = "denoise";
  volumes.task = "restoration";
  volumes.max_voxels = int64_t{1} << 33;
  FakeDaemon daemon;
  daemon.SetModels({clips, volumes});
  EXPECT_THAT(RunWith({"models", "--url", daemon.url()}).out,
              AllOf(HasSubstr("  768x 96x96  "), HasSubstr("  up to 8589934592 voxels  ")));
  const auto json = nlohmann::json::parse(RunWith({"models", "--json", "--url", daemon.url()}).out);
  EXPECT_EQ(json["models"][0]["max_frames"], 768);
  EXPECT_EQ(json["models"][0]["frames_per_second"], 12.5);
  EXPECT_EQ(json["models"][0]["max_voxels"], 0);
  EXPECT_EQ(json["models"][1]["max_voxels"], int64_t{1} << 33);
}

TEST(Models, ShowThePrecisionIfOneIsLower) {
  FakeDaemon daemon;
  std::vector<Model> models = TwoModels();
  models[0].precision = "bf16";
  models[0].precision_reason = "set in the configuration";
  models[1].precision = "fp32";
  daemon.SetModels(models);
  const std::string out = RunWith({"models", "--url", daemon.url()}).out;
  EXPECT_THAT(out, HasSubstr("PRECISION"));
  EXPECT_THAT(out, HasSubstr("3  bf16"));
  const auto json = nlohmann::json::parse(RunWith({"models", "--json", "--url", daemon.url()}).out);
  EXPECT_EQ(json["models"][0]["precision"], "bf16");
  EXPECT_EQ(json["models"][0]["precision_reason"], "set in the configuration");
}

TEST(Models, ShowWhatARuleHasComeTo) {
  FakeDaemon daemon;
  std::vector<Model> models = TwoModels();
  models[0].promotion = Promotion{.state = Promotion::State::kRefused,
                                  .rule = "agreement >= 0.995 after 1000 requests",
                                  .shadow = 4,
                                  .replaces = 3,
                                  .reason = "agreement is 0.5, expected >= 0.995"};
  daemon.SetModels(models);
  const std::string line = "shadow version 4 refused: agreement is 0.5, expected >= 0.995";
  EXPECT_THAT(RunWith({"models", "--url", daemon.url()}).out, HasSubstr(line));
  EXPECT_THAT(RunWith({"status", "--url", daemon.url()}).out, HasSubstr(line));
  for (const char* const command : {"models", "status"}) {
    const auto json = nlohmann::json::parse(RunWith({command, "--json", "--url", daemon.url()}).out);
    EXPECT_EQ(json["models"][0]["promotion"]["state"], "refused");
    EXPECT_EQ(json["models"][0]["promotion"]["rule"], "agreement >= 0.995 after 1000 requests");
    EXPECT_FALSE(json["models"][1].contains("promotion"));
  }
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

TEST(Params, CountsSanetAsItsPaperDoes) {
  const RunResult run = RunWith({"params", "sanet"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("3,449,408"));
  const auto json = nlohmann::json::parse(RunWith({"params", "sanet", "--json", "--layers"}).out);
  EXPECT_EQ(json["parameters"], 3449408);
  EXPECT_GT(json["parameters_in_full"], json["parameters"]);
  EXPECT_GT(json["attention"]["parameters_ratio"], 0.0);
  EXPECT_LT(json["attention"]["multiply_adds_ratio"], 1.0);
  EXPECT_EQ(json["task"], "classification");
  int64_t of_modules = 0;
  for (const auto& module : json["attention"]["modules"]) {
    of_modules += module["parameters_in_full"].get<int64_t>();
  }
  EXPECT_EQ(of_modules, json["attention"]["parameters_in_full"]);
  int64_t parameters = 0;
  for (const auto& layer : json["layers"]) parameters += layer["parameters"].get<int64_t>();
  EXPECT_EQ(parameters, 3449408);
}

// The paper's table: bytes and multiply-adds at 896x1280, of all modules and of the first.
TEST(Params, CountsTheAttentionOfMaskRcnnModuleByModule) {
  const RunResult run = RunWith({"params", "ea_mask_rcnn_r50"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\nATTENTION "));
  EXPECT_THAT(run.out, HasSubstr("BYTES\n"));
  const auto json = nlohmann::json::parse(RunWith({"params", "ea_mask_rcnn_r50", "--json"}).out);
  EXPECT_EQ(json["task"], "detection");
  const auto& modules = json["attention"]["modules"];
  ASSERT_EQ(modules.size(), 7u);
  int64_t bytes = 0, madds = 0;
  for (const auto& module : modules) {
    bytes += module["bytes"].get<int64_t>();
    madds += module["multiply_adds"].get<int64_t>();
  }
  EXPECT_EQ(bytes, json["attention"]["bytes"]);
  EXPECT_EQ(madds, json["attention"]["multiply_adds"]);
  EXPECT_NEAR(static_cast<double>(bytes), 354e6, 0.5e6);
  EXPECT_NEAR(static_cast<double>(madds), 8.85e9, 0.005e9);
  EXPECT_EQ(modules[0]["name"], "backbone.attention.res3");
  EXPECT_NEAR(modules[0]["bytes"].get<double>(), 41.3e6, 0.05e6);
  EXPECT_NEAR(modules[0]["multiply_adds"].get<double>(), 1.21e9, 0.005e9);
}

TEST(Params, PrintsNoAttentionTableWithoutAttention) {
  const RunResult run = RunWith({"params", "sanet", "--option", "attention=none"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, Not(HasSubstr("\nATTENTION ")));
}

TEST(Params, ListsTheArchitectures) {
  const RunResult run = RunWith({"params", "sannet"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("there is no architecture 'sannet'; expected one of: "));
  EXPECT_THAT(run.err, HasSubstr("sanet"));
}

TEST(Params, RejectsInvalidOptions) {
  EXPECT_EQ(RunWith({"params", "sanet", "--option", "bad=1"}).exit_code, 2);
  EXPECT_THAT(RunWith({"params", "sanet", "--option", "classes"}).err, HasSubstr("expected KEY=VALUE"));
}

}  // namespace
}  // namespace saccade::client
