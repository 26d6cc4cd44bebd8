#include "client/cli/commands/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/testing/command_test.h"
#include "models/graphs/testing/onnx_bytes.h"
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

using models::testing::Message;
using models::testing::OnnxModel;
using models::testing::OnnxValue;

// A graph of one input and one output, with further fields.
std::string Graph(const std::string& input, const std::string& output, const std::string& more = "") {
  return OnnxModel(Message(11, input) + Message(12, output) + more);
}

TEST_F(Init, OnnxFilesGetTheirInputsAndOutputs) {
  const std::string graph = Graph(OnnxValue("pixels", 1, {-1, 3, 64, 64}), OnnxValue("scores", 1, {-1, 3}));
  const RunResult wrong = Run(File("w", graph), {"--labels", File("labels", "cat\ndog\n")});
  EXPECT_THAT(wrong.err, HasSubstr("has 2 labels; the network has 3 classes"));
  const RunResult run =
      Run(File("w", Message(2, "pytorch") + graph), {"--labels", File("labels", "cat\ndog\nox\n")});
  EXPECT_EQ(run.exit_code, 1) << "the version of the format comes first, unless the name ends in .onnx";
  const RunResult named =
      Run(File("w.ONNX", Message(2, "pytorch") + graph), {"--labels", File("labels", "cat\ndog\nox\n")});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_THAT(named.out,
              AllOf(HasSubstr("an ONNX file of pytorch"), HasSubstr("input 'pixels' is FP32 [-1,3,64,64]"),
                    HasSubstr("saccade-openvino"), HasSubstr("\"size\": [64, 64]")));
  EXPECT_THAT(named.out, Not(HasSubstr("it has no labels")));
  EXPECT_EQ(Config(),
            "backend: \"onnxruntime\"\nmax_batch_size: 8\n"
            "input { name: \"pixels\" data_type: TYPE_FP32 dims: [ 3, 64, 64 ] }\n"
            "output { name: \"scores\" data_type: TYPE_FP32 dims: [ 3 ] label_filename: \"labels.txt\" }\n");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "models" / "net" / "1" / "model.onnx"));
  EXPECT_EQ(Read(folder_ / "models" / "net" / "labels.txt"), "cat\ndog\nox\n");
}

TEST_F(Init, OnnxFilesAreBatchedAsTheyWereExported) {
  const struct {
    std::vector<int64_t> input, output;
    const char* config;
  } graphs[] = {
      {{1, 3, 8, 8},
       {1, 5},
       "max_batch_size: 1\ninput { name: \"x\" data_type: TYPE_FP32 dims: [ 3, 8, 8 ] }"},
      {{4, 3}, {4, 5}, "max_batch_size: 0\ninput { name: \"x\" data_type: TYPE_FP32 dims: [ 4, 3 ] }"},
      {{-1, 3}, {7}, "max_batch_size: 0\ninput { name: \"x\" data_type: TYPE_FP32 dims: [ -1, 3 ] }"},
      {{-1},
       {-1, 2},
       "max_batch_size: 8\ninput { name: \"x\" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } }"},
  };
  for (const auto& graph : graphs) {
    std::filesystem::remove_all(folder_ / "models");
    const RunResult run =
        Run(File("w", Graph(OnnxValue("x", 1, graph.input), OnnxValue("y", 1, graph.output))));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(Config(), HasSubstr(graph.config));
    // Labels without their name in the configuration would not be read.
    EXPECT_EQ(run.out.find("labels.txt, and label_filename") != std::string::npos, graph.input.size() == 4);
  }
}

TEST_F(Init, NamesInOnnxFilesAreTexts) {
  const std::string name = "a\" } parameters { key: \"\n";
  const RunResult run = Run(File("w", Graph(OnnxValue(name, 1, {1, 2}), OnnxValue("y", 1, {1, 2}))));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(Config(), HasSubstr("name: \"a\\\" } parameters { key: \\\"\\n\""));
}

TEST_F(Init, ExternalDataOfOnnxFilesIsCopiedFromTheirFolderOnly) {
  const auto external = [](const std::string& location) {
    const std::string tensor = Message(8, "w") + Message(13, Message(1, "location") + Message(2, location));
    return Graph(OnnxValue("x", 1, {1, 2}), OnnxValue("y", 1, {1, 2}), Message(5, tensor));
  };
  std::filesystem::create_directories(folder_ / "in" / "data");
  File("in/data/weights.bin", "0123456789");
  File("secret", "secret");
  for (const std::string outside : {"../secret", "data/../../secret", "/etc/passwd", "nowhere"}) {
    const RunResult run = Run(File("in/w", external(outside)));
    EXPECT_EQ(run.exit_code, 1) << outside;
    EXPECT_THAT(run.err, HasSubstr("external data of tensor 'w'"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "models")) << outside;
  }
  // What the file system takes for a file of the folder, and the copy would not.
  std::filesystem::create_directory_symlink(folder_ / "in" / "data", folder_ / "in" / "link");
  std::filesystem::create_directories(folder_ / "in" / "data" / "deep");
  std::filesystem::create_directory_symlink(folder_ / "in" / "data" / "deep", folder_ / "in" / "deep");
  EXPECT_THAT(Run(File("in/w", external("deep/../weights.bin"))).err, HasSubstr("cannot be copied"));
  std::filesystem::remove_all(folder_ / "models");
  const RunResult run = Run(File("in/w", external("link/weights.bin")));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("its weights are in 1 file beside it"));
  EXPECT_EQ(Read(folder_ / "models" / "net" / "1" / "link" / "weights.bin"), "0123456789");
}

TEST_F(Init, WhatGraphsCannotHaveHereIsSaid) {
  EXPECT_THAT(Run(File("w", Graph(OnnxValue("x", 8, {1}), OnnxValue("y", 1, {1})))).err,
              HasSubstr("the input 'x' is neither a tensor of numbers"));
  EXPECT_THAT(Run(File("w.onnx", "not a graph")).err,
              HasSubstr("w.onnx: the ONNX file is cut short or damaged"));
  EXPECT_THAT(Run(File("w.xml", "<net/>")).err, HasSubstr("1/model.bin"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "models"));
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

TEST_F(Init, SaysThatAFileHoldsNoWeights) {
  const std::string page = File("w.pth", "<html>Sign in to download the file</html>");
  const RunResult run = Run(page);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr(page), HasSubstr("holds no weights"), HasSubstr("model.state_dict()"),
                             Not(HasSubstr("header claims"))));
  EXPECT_THAT(Run(File("v", "short")).err, HasSubstr("holds no weights"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "models"));
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
