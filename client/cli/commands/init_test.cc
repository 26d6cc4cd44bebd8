#include "client/cli/commands/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/testing/command_test.h"
#include "models/graphs/testing/onnx_bytes.h"
#include "models/networks/testing/network_files.h"
#include "models/weights/format/testing/files.h"

namespace saccade::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using models::TensorEntry;
using models::testing::FileOf;
using models::testing::Rename;

// A safetensors file of these tensors, with elements of a byte.
std::string Weights(const std::vector<TensorEntry>& entries) {
  std::string header = "{";
  size_t end = 0;
  for (const TensorEntry& entry : entries) {
    int64_t elements = 1;
    EXPECT_TRUE(models::Product(entry.shape, elements));
    const size_t begin = std::exchange(end, end + static_cast<size_t>(elements));
    absl::StrAppend(&header, header.size() > 1 ? "," : "", "\"", entry.name,
                    "\":{\"dtype\":\"F8_E4M3\",\"shape\":[", absl::StrJoin(entry.shape, ","),
                    "],\"data_offsets\":[", begin, ",", end, "]}");
  }
  return models::testing::Safetensors(header + "}", std::string(end, '\0'));
}

std::vector<TensorEntry> Resnet18(const std::string& classes) {
  return FileOf("resnet18", {{"classes", classes}});
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

TEST_F(Init, RecognisesTheNetworkAndItsClasses) {
  const RunResult run = Run(File("w", Weights(Resnet18("37"))));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("of resnet18 with 37 classes"));
  EXPECT_THAT(Config(), AllOf(HasSubstr("\"resnet18\""), HasSubstr("\"37\""), Not(HasSubstr("blocks"))));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "models" / "net" / "1" / "weights.safetensors"));
}

TEST_F(Init, SaysWhatWrappersPutBeforeTheNames) {
  std::vector<TensorEntry> file = Resnet18("1000");
  Rename(file, "", "model.");
  const RunResult run = Run(File("w", Weights(file)));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("all 102 names carry the prefix 'model.'"));
  EXPECT_THAT(Config(), Not(HasSubstr("classes")));
}

TEST_F(Init, LabelsMustBeOnePerClass) {
  const std::string weights = File("w", Weights(Resnet18("2")));
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
  EXPECT_THAT(Run(File("in/w", external("deep/../weights.bin"))).err,
              HasSubstr("a path with a hidden name or '..'"));
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

TEST_F(Init, SaysWhichNetworkWasMeant) {
  for (const std::string prefix : {"", "backbone.", "student.net."}) {
    std::vector<TensorEntry> file = Resnet18("10");
    file.erase(file.begin());
    Rename(file, "fc.", "head.");
    Rename(file, "", prefix);
    file.push_back({.name = "loss.weight", .shape = {3}, .strides = {}});
    const RunResult run = Run(File("w", Weights(file)));
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err,
                AllOf(HasSubstr("99 of its 102 tensors have the names of 'resnet18' with classes=10"),
                      HasSubstr("did you mean that network?"),
                      HasSubstr("'fc.weight' is missing; 'head.weight' has its shape [10, 512]: rename"),
                      HasSubstr("'conv1.weight' [64, 3, 7, 7] is missing"),
                      HasSubstr("'loss.weight' [3] is surplus: remove it")));
    EXPECT_THAT(run.err, prefix.empty() ? HasSubstr("with exactly its tensors")
                                        : HasSubstr("name.removeprefix(\"" + prefix + "\")"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "models"));
  }
}

// Before, such files were taken, and the daemon rejected them.
TEST_F(Init, SurplusTensorsAreNotTakenWithoutAWord) {
  std::vector<TensorEntry> file = Resnet18("10");
  file.push_back({.name = "ema.fc.weight", .shape = {10, 512}, .strides = {}});
  const std::string weights = File("w", Weights(file));
  EXPECT_THAT(Run(weights).err, HasSubstr("'ema.fc.weight' [10, 512] is surplus: remove it"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "models"));
  const RunResult named = Run(weights, {"--architecture", "resnet18"});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_THAT(named.out, AllOf(HasSubstr("do not fit 'resnet18'"), HasSubstr("is surplus: remove it")));
  EXPECT_THAT(Config(), HasSubstr("\"10\""));
}

TEST_F(Init, TwinsNeedTheirName) {
  const std::string weights = File("w", Weights(FileOf("kanet_qkv", {{"classes", "3"}})));
  const RunResult run = Run(weights);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("'kanet_kv' or 'kanet_qkv'"), HasSubstr("--architecture")));
  const RunResult named = Run(weights, {"--architecture", "kanet_qkv"});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_THAT(named.out, AllOf(HasSubstr("of kanet_qkv with 3 classes"), Not(HasSubstr("fit"))));
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
  const std::string weights =
      File("w", Weights({{.name = "encoder.weight", .shape = {3, 0}, .strides = {}}}));
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
