#include "client/cli/commands/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/testing/command_test.h"
#include "models/weights/format/testing/files.h"

namespace saccade::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A safetensors file of tensors without elements, except for their first dimension: recognising them needs no
// data.
std::string Weights(const std::vector<std::pair<std::string, int64_t>>& rows) {
  std::string header = "{";
  for (const auto& [name, count] : rows) {
    header += header.size() > 1 ? "," : "";
    header += "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[" + std::to_string(count) +
              ",0],\"data_offsets\":[0,0]}";
  }
  return models::testing::Safetensors(header + "}", "");
}

std::vector<std::pair<std::string, int64_t>> Resnet(const std::string& prefix, int64_t classes,
                                                    const std::vector<int>& blocks, bool basic) {
  std::vector<std::pair<std::string, int64_t>> rows = {{prefix + "conv1.weight", 64},
                                                       {prefix + "fc.weight", classes}};
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::string name = prefix + "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      rows.emplace_back(name + ".conv1.weight", 64);
      if (!basic) rows.emplace_back(name + ".conv3.weight", 64);
    }
  }
  return rows;
}

class Init : public CommandTest {
 protected:
  RunResult Run(const std::string& weights, std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"init", weights, "-o", (folder_ / "models" / "net").string()};
    all.insert(all.end(), more.begin(), more.end());
    return RunWith(all);
  }
  std::string Config() { return Read(folder_ / "models" / "net" / "config.pbtxt"); }
};

TEST_F(Init, RecognisesResnetsAndTheirClasses) {
  const struct {
    const char* name;
    std::vector<int> blocks;
    bool basic;
  } networks[] = {{"resnet18", {2, 2, 2, 2}, true},
                  {"resnet34", {3, 4, 6, 3}, true},
                  {"resnet50", {3, 4, 6, 3}, false},
                  {"resnet101", {3, 4, 23, 3}, false},
                  {"resnet152", {3, 8, 36, 3}, false}};
  for (const auto& network : networks) {
    std::filesystem::remove_all(folder_ / "models");
    const RunResult run = Run(File("w", Weights(Resnet("", 37, network.blocks, network.basic))));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr(std::string("of ") + network.name + " with 37 classes"));
    EXPECT_THAT(Config(), AllOf(HasSubstr(std::string("\"") + network.name + "\""), HasSubstr("\"37\""),
                                Not(HasSubstr("blocks"))));
    EXPECT_TRUE(std::filesystem::exists(folder_ / "models" / "net" / "1" / "weights.safetensors"));
  }
}

TEST_F(Init, SaysWhatWrappersPutBeforeTheNames) {
  const RunResult run = Run(File("w", Weights(Resnet("model.", 1000, {2, 2, 2, 2}, true))));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("all 10 names carry the prefix 'model.'"));
  EXPECT_THAT(Config(), Not(HasSubstr("classes")));
}

TEST_F(Init, LabelsMustBeOnePerClass) {
  const std::string weights = File("w", Weights(Resnet("", 2, {2, 2, 2, 2}, true)));
  const RunResult wrong = Run(weights, {"--labels", File("labels", "cat\ndog\nbird\n")});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("has 3 labels; the network has 2 classes"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "models"));
  EXPECT_EQ(Run(weights, {"--labels", File("labels", "cat\ndog")}).exit_code, 0);
  EXPECT_EQ(Read(folder_ / "models" / "net" / "labels.txt"), "cat\ndog\n");
  const RunResult again = Run(weights);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("holds a model already"));
}

TEST_F(Init, ProgramsGetAnExampleOfTheirInputs) {
  using models::testing::Zip;
  const RunResult script = Run(File("p", Zip({{"p/data.pkl", ""}, {"p/constants.pkl", ""}})));
  EXPECT_EQ(script.exit_code, 0) << script.err;
  EXPECT_THAT(script.out, AllOf(HasSubstr("TorchScript"), HasSubstr("--allow-executable-models")));
  EXPECT_THAT(Config(), HasSubstr("backend: \"pytorch\""));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "models" / "net" / "1" / "model.pt"));
  std::filesystem::remove_all(folder_ / "models");
  EXPECT_EQ(Run(File("p", Zip({{"p/data/aotinductor/model/a.so", ""}}))).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "models" / "net" / "1" / "model.pt2"));
}

// The stem is missing, so that the network is not recognised, but most names are there.
TEST_F(Init, SaysWhichNetworkWasMeant) {
  for (const std::string prefix : {"", "backbone.", "student.net."}) {
    auto rows = Resnet(prefix, 10, {3, 4, 6, 3}, false);
    rows.erase(rows.begin());
    rows.emplace_back("loss.weight", 3);
    const RunResult run = Run(File("w", Weights(rows)));
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, AllOf(HasSubstr("33 of its 34 tensors have the names of"),
                               HasSubstr("did you mean that network?")));
    EXPECT_THAT(run.err, prefix.empty() ? HasSubstr("name it with --architecture")
                                        : HasSubstr("name.removeprefix(\"" + prefix + "\")"));
  }
  EXPECT_THAT(Run(File("w", Weights({{"encoder.weight", 3}, {"decoder.weight", 3}}))).err,
              Not(HasSubstr("did you mean")));
}

TEST_F(Init, SaysThatNothingIsRecognised) {
  const std::string weights = File("w", Weights({{"encoder.weight", 3}}));
  const RunResult run = Run(weights);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr(weights), HasSubstr("'encoder.weight' [3, 0]"), HasSubstr("--architecture")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "models"));
  EXPECT_EQ(Run(weights, {"--architecture", "sanet"}).exit_code, 0);
  EXPECT_THAT(Config(), HasSubstr("\"sanet\""));
  EXPECT_THAT(Run(folder_ / "missing").err, HasSubstr("holds a model already"));
  std::filesystem::remove_all(folder_ / "models");
  EXPECT_THAT(Run(folder_ / "missing").err, HasSubstr("missing"));
}

}  // namespace
}  // namespace saccade::client
