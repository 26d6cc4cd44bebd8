#include "server/repository/repository.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graphs/onnx_ports.h"
#include "models/graphs/testing/onnx_bytes.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr char kConfig[] = "parameters { key: \"architecture\" value { string_value: \"sanet\" } }";

std::string ErrorOf(const TestRepository& repository, const std::string& name) {
  return std::string(ReadModel(repository.string(), name).status().message());
}

// Returns the error of the only version that is served.
std::string VersionErrorOf(const TestRepository& repository, const std::string& name) {
  const auto model = ReadModel(repository.string(), name);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? std::string(model->versions.at(0).status.message()) : "";
}

TEST(RepositoryTest, ReadsAModel) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", absl::StrCat(kConfig, "version_policy { all { } }"));
  repository.Write("m/labels.txt", "cat\ndog\n");
  repository.Write("m/10/weights.safetensors", "w");
  repository.Write("m/9/weights.pt", "w");
  repository.Write("m/notes/readme", "passed over");
  const auto model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->settings.name, "m");
  EXPECT_THAT(model->settings.labels, ElementsAre("cat", "dog"));
  ASSERT_EQ(model->versions.size(), 2u);
  EXPECT_EQ(model->versions[0].version, 9);
  EXPECT_THAT(model->versions[0].weights_path, EndsWith("m/9/weights.pt"));
  EXPECT_EQ(model->versions[1].version, 10);
  EXPECT_THAT(model->versions[1].weights_path, EndsWith("m/10/weights.safetensors"));
}

TEST(RepositoryTest, APathThatIsOneLevelOffIsNamed) {
  TestRepository repository;
  repository.Write("models/m/config.pbtxt", kConfig);
  repository.Write("models/m/1/weights.safetensors", "w");
  repository.Write("models/bare/1/weights.pt", "w");
  const std::string below = (repository.path() / "models" / "m").string();
  EXPECT_THAT(std::string(ScanRepository(below).status().message()),
              AllOf(HasSubstr(below), HasSubstr("is a model's own folder: it holds config.pbtxt"),
                    HasSubstr("give the folder above it")));
  EXPECT_THAT(
      std::string(ScanRepository((repository.path() / "models" / "bare").string()).status().message()),
      HasSubstr("it holds the version 1 with weights.pt"));
  EXPECT_THAT(std::string(ScanRepository(below + "/1").status().message()),
              AllOf(HasSubstr("is the folder of a model's version: it holds weights.safetensors"),
                    HasSubstr("give the folder two levels above it, which holds a folder for each model")));
  EXPECT_TRUE(ScanRepository((repository.path() / "models").string()).ok());
  EXPECT_THAT(ErrorOf(repository, "models"),
              HasSubstr("models is no model, but holds the model 'm'; if it is a folder of models"));
}

TEST(RepositoryTest, OneBrokenModelDoesNotHideTheOthers) {
  TestRepository repository;
  repository.Write("good/config.pbtxt", kConfig);
  repository.Write("good/1/weights.safetensors", "w");
  repository.Write("empty/1/weights.pt", "w");
  repository.Write("bad name\n/config.pbtxt", kConfig);
  repository.Write(".hidden/config.pbtxt", kConfig);
  repository.Write("lost+found/x", "");
  repository.Write("README", "a plain file");
  const auto scan = ScanRepository(repository.string());
  ASSERT_TRUE(scan.ok()) << scan.status();
  ASSERT_EQ(scan->models.size(), 1u);
  EXPECT_EQ(scan->models[0].settings.name, "good");
  EXPECT_THAT(scan->broken,
              ElementsAre(Field(&BrokenModel::name, "bad name\\n"), Field(&BrokenModel::name, "empty")));
  EXPECT_THAT(std::string(scan->broken[0].status.message()), HasSubstr("is not a model name"));
  EXPECT_THAT(std::string(scan->broken[1].status.message()),
              HasSubstr("empty/config.pbtxt is missing, so the architecture is unknown"));
}

TEST(RepositoryTest, ARepositoryThatIsNotThereIsAnError) {
  TestRepository repository;
  EXPECT_EQ(ScanRepository(repository.string() + "/nowhere").status().code(), absl::StatusCode::kNotFound);
}

TEST(RepositoryTest, NamesNeverReachTheFileSystemUnchecked) {
  TestRepository repository;
  for (const char* name : {"", ".", "..", "../m", "a/b", ".hidden", "m\n", " m", "m ", "\xC3\xBC"}) {
    EXPECT_EQ(ReadModel(repository.string(), name).status().code(), absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_FALSE(CheckModelName(std::string(129, 'a')).ok());
  EXPECT_TRUE(CheckModelName(std::string(128, 'a')).ok());
  EXPECT_TRUE(CheckModelName("a b%2F+c").ok());
  EXPECT_EQ(ReadModel(repository.string(), "nowhere").status().code(), absl::StatusCode::kNotFound);
}

TEST(RepositoryTest, SamplesAreFilesOfTheFolder) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/1/weights.pt", "w");
  EXPECT_THAT(ReadModel(repository.string(), "m")->settings.samples, IsEmpty());
  repository.Write("m/samples/b.png", "b");
  repository.Write("m/samples/a.png", "a");
  repository.Write("m/samples/.hidden.png", "h");
  repository.Write("m/samples/..data/c.png", "c");
  std::filesystem::create_symlink("..data/c.png", repository.path() / "m/samples/c.png");
  std::filesystem::create_symlink("../1/weights.pt", repository.path() / "m/samples/d.png");
  const auto model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->settings.samples,
              ElementsAre(EndsWith("/m/samples/..data/c.png"), EndsWith("/m/samples/a.png"),
                          EndsWith("/m/samples/b.png")));
  EXPECT_THAT(model->settings.warnings,
              Contains(HasSubstr("m/samples: 1 of its files are links that lead out")));
  for (int i = 0; i < 10'000; ++i) repository.Write(absl::StrCat("m/samples/", 10'000 + i, ".png"), "x");
  EXPECT_EQ(ReadModel(repository.string(), "m")->settings.samples.size(), 64u);
}

TEST(RepositoryTest, WeightsAreChosenByName) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/1/epoch_3.pth", "w");
  repository.Write("m/1/log.csv", "not weights");
  EXPECT_THAT(ReadModel(repository.string(), "m")->versions[0].weights_path, EndsWith("/epoch_3.pth"));
  repository.Write("m/1/epoch_4.pth", "w");
  EXPECT_THAT(VersionErrorOf(repository, "m"),
              HasSubstr("m/1: has several weights files ('epoch_3.pth', 'epoch_4.pth'); name one"));
  repository.Write("m/1/model.safetensors", "w");
  EXPECT_THAT(ReadModel(repository.string(), "m")->versions[0].weights_path, EndsWith("/model.safetensors"));
  repository.Write("m/1/weights.safetensors", "w");
  EXPECT_THAT(ReadModel(repository.string(), "m")->versions[0].weights_path,
              EndsWith("/weights.safetensors"));
  const std::string named = absl::StrCat(kConfig, "parameters { key: \"weights\" value { string_value: \"");
  repository.Write("m/config.pbtxt", named + "epoch_4.pth\" } }");
  EXPECT_THAT(ReadModel(repository.string(), "m")->versions[0].weights_path, EndsWith("/epoch_4.pth"));
  repository.Write("m/config.pbtxt", named + "epoch_5.pth\" } }");
  EXPECT_THAT(VersionErrorOf(repository, "m"), HasSubstr("m/1: has no weights file 'epoch_5.pth'"));
}

TEST(RepositoryTest, VersionsArePositiveIntegers) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/v1/weights.pt", "w");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m: has no version; put the weights into m/1/"));
  for (const std::string version : {"0", "01", "99999999999999999999"}) {
    repository.Write("m/" + version + "/weights.pt", "w");
    EXPECT_THAT(ErrorOf(repository, "m"),
                HasSubstr("m/" + version + ": is not a version; expected a positive integer"));
    std::filesystem::remove_all(repository.path() / "m" / version);
  }
}

TEST(RepositoryTest, AVersionWithoutWeightsIsAnErrorOfItsOwn) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", absl::StrCat(kConfig, "version_policy { all { } }"));
  repository.Write("m/1/weights.pt", "w");
  std::filesystem::create_directory(repository.path() / "m" / "2");
  const auto model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->versions.size(), 2u);
  EXPECT_TRUE(model->versions[0].status.ok());
  EXPECT_THAT(std::string(model->versions[1].status.message()),
              HasSubstr("m/2: has no weights; expected weights.safetensors"));
}

TEST(RepositoryTest, LinksThatLeadOutAreRefused) {
  TestRepository repository, elsewhere;
  elsewhere.Write("weights.pt", "w");
  elsewhere.Write("model/config.pbtxt", kConfig);
  repository.Write("m/config.pbtxt", kConfig);
  std::filesystem::create_directory(repository.path() / "m" / "1");
  std::filesystem::create_symlink(elsewhere.path() / "weights.pt",
                                  repository.path() / "m" / "1" / "weights.pt");
  EXPECT_THAT(VersionErrorOf(repository, "m"), HasSubstr("m/1/weights.pt: a symbolic link leads out"));
  std::filesystem::create_symlink(elsewhere.path() / "model", repository.path() / "linked");
  EXPECT_THAT(ErrorOf(repository, "linked"), HasSubstr("linked: a symbolic link leads out"));
}

TEST(RepositoryTest, WeightsThatAreLinksKeepTheirNamesAndFolders) {
  TestRepository repository;
  repository.Write("blobs/ab12", "w");
  repository.Write("x/model.xml", "w");
  const auto link = [&](const std::string& to, const std::string& file) {
    const std::filesystem::path path = repository.path() / "m" / "1" / file;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::remove(path);
    std::filesystem::create_symlink(to, path);
  };
  constexpr char kTensors[] =
      "input { name: \"a\" data_type: TYPE_FP32 dims: 1 } output { name: \"b\" data_type: TYPE_FP32 dims: 1 "
      "}";
  struct Case {
    std::string config, name, target;
  };
  for (const Case& one : {Case{"backend: \"openvino\"", "model.xml", "../../x/model.xml"},
                          Case{"backend: \"openvino\"", "model.xml", "../../blobs/ab12"},
                          Case{"backend: \"onnxruntime\"", "model.onnx", "../../x/model.xml"},
                          Case{"backend: \"pytorch\"", "model.pt2", "../../blobs/ab12"},
                          Case{kConfig, "weights.safetensors", "../../blobs/ab12"}}) {
    repository.Write("m/config.pbtxt", one.config == kConfig ? one.config : one.config + kTensors);
    link(one.target, one.name);
    const auto model = ReadModel(repository.string(), "m");
    ASSERT_TRUE(model.ok()) << one.name << ": " << model.status();
    EXPECT_THAT(model->versions.at(0).weights_path, EndsWith("/m/1/" + one.name)) << one.target;
    std::filesystem::remove_all(repository.path() / "m");
  }
  repository.Write("m/config.pbtxt", kConfig);
  link("../../blobs/ab12", "weights.pt");
  link("../../blobs/ab12", "weights.int8.safetensors");
  EXPECT_THAT(ReadModel(repository.string(), "m")->versions.at(0).int8_weights_path,
              EndsWith("/m/1/weights.int8.safetensors"));
}

TEST(RepositoryTest, FilesAreBoundedAndUtf8) {
  TestRepository repository;
  repository.Write("m/1/weights.pt", "w");
  repository.Write("m/config.pbtxt", absl::StrCat(kConfig, std::string(1 << 20, ' ')));
  EXPECT_THAT(ErrorOf(repository, "m"),
              HasSubstr("m/config.pbtxt: is larger than the maximum of 1048576 bytes"));
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/labels.txt", "gr\xFC\xDF\n");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m/labels.txt: is not UTF-8 text"));
}

TEST(RepositoryTest, ANamedLabelsFileMustBeThere) {
  TestRepository repository;
  repository.Write(
      "m/config.pbtxt",
      absl::StrCat(kConfig, "parameters { key: \"labels\" value { string_value: \"names.txt\" } }"));
  repository.Write("m/1/weights.pt", "w");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m/names.txt: cannot open it"));
  repository.Write("m/names.txt", "cat");
  EXPECT_THAT(ReadModel(repository.string(), "m")->settings.labels, ElementsAre("cat"));
}

std::vector<int64_t> Served(const TestRepository& repository, absl::string_view policy) {
  repository.Write("m/config.pbtxt", absl::StrCat(kConfig, policy));
  const auto model = ReadModel(repository.string(), "m");
  EXPECT_TRUE(model.ok()) << model.status();
  std::vector<int64_t> versions;
  for (const ModelVersion& version : model->versions) versions.push_back(version.version);
  return versions;
}

TEST(RepositoryTest, ThePolicyChoosesVersions) {
  TestRepository repository;
  for (const char* version : {"1", "3", "20"})
    repository.Write(absl::StrCat("m/", version, "/weights.pt"), "w");
  EXPECT_THAT(Served(repository, ""), ElementsAre(20));
  EXPECT_THAT(Served(repository, "version_policy { latest { num_versions: 2 } }"), ElementsAre(3, 20));
  EXPECT_THAT(Served(repository, "version_policy { latest { num_versions: 9 } }"), ElementsAre(1, 3, 20));
  EXPECT_THAT(Served(repository, "version_policy { all { } }"), ElementsAre(1, 3, 20));
  EXPECT_THAT(Served(repository, "version_policy { specific { versions: [ 20, 1 ] } }"), ElementsAre(1, 20));
  EXPECT_THAT(Served(repository, "version_policy { specific { versions: [ 4, 1 ] } }"), ElementsAre(1));
  EXPECT_THAT(ReadModel(repository.string(), "m")->settings.warnings,
              ElementsAre("m: version_policy names versions 4, which do not exist; available are 1, 3, 20"));
  repository.Write("m/config.pbtxt", absl::StrCat(kConfig, "version_policy { specific { versions: 2 } }"));
  EXPECT_EQ(ErrorOf(repository, "m"),
            "m: version_policy names versions 2, which do not exist; available are 1, 3, 20");
}

TEST(RepositoryTest, AShadowVersionIsServedBesideAnother) {
  TestRepository repository;
  for (const char* version : {"1", "3"}) repository.Write(absl::StrCat("m/", version, "/weights.pt"), "w");
  const auto with = [&](absl::string_view shadow, absl::string_view more) {
    repository.Write("m/config.pbtxt",
                     absl::StrCat(kConfig, "parameters { key: \"shadow\" value { string_value: \"", shadow,
                                  "\" } } ", more));
  };
  const std::string all = "version_policy { all { } } ";
  with("version=3,share=0.25,tolerance=0", all);
  const auto model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE(model->settings.shadow);
  EXPECT_EQ(model->settings.shadow->version, 3);
  EXPECT_EQ(model->settings.shadow->share, 0.25);
  EXPECT_EQ(model->settings.shadow->tolerance, 0);
  with("version=2,share=1", all);
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("names version 2, which is not served; served are 1, 3"));
  with("version=1,share=1", "");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("which is not served; served are 3"));
  with("version=3,share=1", "");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("the only one that is served"));
  const auto label = [](absl::string_view text) {
    return absl::StrCat("parameters { key: \"version_labels\" value { string_value: \"", text, "\" } }");
  };
  with("version=3,share=1", absl::StrCat(all, label("stable=3")));
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("which version_labels calls 'stable'"));
  with("version=3,share=1", absl::StrCat(all, label("stable=1,canary=3")));
  EXPECT_TRUE(ReadModel(repository.string(), "m").ok());
  for (const char* wrong :
       {"", "3", "version=3", "share=1", "version=3,share=0", "version=3,share=1.01", "version=3,share=nan",
        "version=3,share=-1", "version=0,share=1", "version=3,version=3,share=1", "version=3,share=1,share=1",
        "version=3,share=1,tolerance=-1", "version=3,share=1,tolerance=inf", "version=3,share=1,",
        "version=3,share=1,more=1"}) {
    with(wrong, all);
    EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("expected version=NUMBER,share=SHARE")) << wrong;
  }
}

// A safetensors file without tensors.
std::string SafetensorsWith(const std::string& metadata) {
  const std::string header = absl::StrCat("{\"__metadata__\":{", metadata, "}}");
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header;
}

constexpr char kTold[] = R"("saccade.architecture":"sanet","saccade.option.classes":"19","format":"pt")";

TEST(RepositoryTest, WhatTheConfigurationLeavesOutTheWeightsTell) {
  TestRepository repository;
  repository.Write("m/1/weights.safetensors", SafetensorsWith(kTold));
  auto model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->settings.architecture, "sanet");
  EXPECT_THAT(model->settings.options, ElementsAre(Pair("classes", "19")));
  repository.Write("m/config.pbtxt",
                   "max_batch_size: 2 parameters { key: \"classes\" value { string_value: \"20\" } }");
  model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->settings.batching.max_batch_size, 2);
  EXPECT_THAT(model->settings.options, ElementsAre(Pair("classes", "20"))) << "what is said stands";
  EXPECT_THAT(std::string(ReadModel(repository.string(), "m", {.complete = false}).status().message()),
              HasSubstr("parameters['architecture']: is missing"));
}

constexpr uint64_t kFloat = 1;

std::string Graph(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  std::string graph;
  for (const std::string& input : inputs) graph += models::testing::Message(11, input);
  for (const std::string& output : outputs) graph += models::testing::Message(12, output);
  return models::testing::OnnxModel(graph);
}

TEST(RepositoryTest, TheInputsAndOutputsOfAnOnnxFileNeedNoConfiguration) {
  using models::testing::OnnxValue;
  TestRepository repository;
  repository.Write("m/1/model.onnx",
                   Graph({OnnxValue("pixels", kFloat, {-1, 3, -1, 224}), OnnxValue("mask", 9, {-1, 7})},
                         {OnnxValue("scores", kFloat, {-1, 1000})}));
  auto model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->settings.backend, Backend::kOnnxruntime);
  EXPECT_TRUE(model->settings.has_batch_dimension);
  EXPECT_EQ(model->settings.batching.max_batch_size, models::kOpenBatch);
  ASSERT_EQ(model->settings.inputs.size(), 2u);
  EXPECT_EQ(model->settings.inputs[0].name, "pixels");
  EXPECT_THAT(model->settings.inputs[0].dims, ElementsAre(3, -1, 224));
  EXPECT_EQ(model->settings.inputs[1].type, models::DataType::kBool);
  EXPECT_THAT(model->settings.outputs.at(0).dims, ElementsAre(1000));
  // What config.pbtxt says stands.
  repository.Write("m/config.pbtxt",
                   "platform: \"onnxruntime_onnx\" max_batch_size: 2 output { name: \"scores\" data_type: "
                   "TYPE_FP32 dims: -1 }");
  model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->settings.batching.max_batch_size, 2);
  EXPECT_THAT(model->settings.inputs.at(0).dims, ElementsAre(3, -1, 224));
  EXPECT_THAT(model->settings.outputs.at(0).dims, ElementsAre(-1));
  EXPECT_THAT(std::string(ReadModel(repository.string(), "m", {.complete = false}).status().message()),
              HasSubstr("input: is missing"));
}

TEST(RepositoryTest, AnOnnxFileWithoutABatchKeepsItsShapes) {
  using models::testing::OnnxValue;
  TestRepository repository;
  repository.Write("m/1/model.onnx",
                   Graph({OnnxValue("x", kFloat, {4, 3})}, {OnnxValue("mean", kFloat, {})}));
  const auto model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_FALSE(model->settings.has_batch_dimension);
  EXPECT_THAT(model->settings.inputs.at(0).dims, ElementsAre(4, 3));
  EXPECT_THAT(model->settings.outputs.at(0).dims, ElementsAre(1));
}

TEST(RepositoryTest, AnOnnxFileThatCannotCompleteAConfigurationSaysWhy) {
  using models::testing::OnnxValue;
  TestRepository repository;
  constexpr uint64_t kText = 8;
  repository.Write("m/1/model.onnx", Graph({OnnxValue("text", kText, {-1})}, {OnnxValue("y", kFloat, {-1})}));
  EXPECT_THAT(
      ErrorOf(repository, "m"),
      AllOf(HasSubstr("m/1/model.onnx: the input 'text' is neither a tensor of numbers nor of booleans"),
            HasSubstr("into config.pbtxt")));
  repository.Write("m/1/model.onnx", Graph({OnnxValue("x", kFloat, {})}, {OnnxValue("y", kFloat, {-1})}));
  repository.Write("m/config.pbtxt", "backend: \"onnxruntime\" max_batch_size: 2");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("the input 'x' has no first size in the file"));
  repository.Write("m/1/model.onnx", "no graph");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m/1/model.onnx: "));
}

TEST(RepositoryTest, WithoutCompletionAConfigurationIsRequired) {
  TestRepository repository;
  repository.Write("m/1/weights.safetensors", SafetensorsWith(kTold));
  EXPECT_EQ(ReadModel(repository.string(), "m", {.complete = false}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(RepositoryTest, AProgramIsKnownByItsName) {
  TestRepository repository;
  repository.Write("m/1/model.pt", "p");
  repository.Write("m/config.pbtxt",
                   "input { name: \"INPUT__0\" data_type: TYPE_FP32 dims: [ 3, -1 ] }"
                   "output { name: \"OUTPUT__0\" data_type: TYPE_FP32 dims: 5 label_filename: \"five\" }");
  repository.Write("m/five", "a\nb\nc\nd\ne\n");
  const auto model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->settings.backend, Backend::kPytorch);
  EXPECT_FALSE(model->settings.has_batch_dimension);
  EXPECT_EQ(model->settings.batching.max_batch_size, 1);
  EXPECT_THAT(model->settings.outputs.at(0).labels, ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(model->versions.at(0).weights_path, EndsWith("m/1/model.pt"));
}

TEST(RepositoryTest, AnEnsembleNeedsNoFolderOfAVersion) {
  TestRepository repository;
  repository.Write("e/config.pbtxt", R"pb(
    platform: "ensemble"
    input { name: "a" data_type: TYPE_FP32 dims: 1 }
    output { name: "c" data_type: TYPE_FP32 dims: 1 }
    ensemble_scheduling {
      step {
        model_name: "second"
        model_version: -1
        input_map { key: "x" value: "b" }
        output_map { key: "y" value: "c" }
      }
      step {
        model_name: "first"
        model_version: 3
        input_map { key: "x" value: "a" }
        output_map { key: "y" value: "b" }
      }
    })pb");
  const auto model = ReadModel(repository.string(), "e");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->settings.backend, Backend::kEnsemble);
  ASSERT_EQ(model->versions.size(), 1u);
  EXPECT_EQ(model->versions[0].version, 1);
  EXPECT_EQ(model->versions[0].weights_path, "");
  ASSERT_EQ(model->settings.ensemble.size(), 2u);
  EXPECT_EQ(model->settings.ensemble[0].model, "first") << "in the order of what needs what";
  EXPECT_EQ(model->settings.ensemble[0].version, 3);
  EXPECT_EQ(model->settings.ensemble[1].version, 0) << "the latest";
}

TEST(RepositoryTest, ARequestsConfigurationStandsForTheFile) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/1/weights.pt", "w");
  auto model = ReadModel(
      repository.string(), "m",
      {.config_json =
           R"({"max_batch_size": 3, "parameters": {"architecture": {"string_value": "kanet_kv"}}})"});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->settings.architecture, "kanet_kv");
  EXPECT_EQ(model->settings.batching.max_batch_size, 3);
  model = ReadModel(repository.string(), "m", {.config_json = R"({"max_batch_size": "many"})"});
  EXPECT_THAT(std::string(model.status().message()),
              HasSubstr("the request's configuration: is not a model configuration in JSON"));
  model = ReadModel(repository.string(), "m", {.config_json = "{\"max_batch_size\" 4}"});
  EXPECT_THAT(std::string(model.status().message()),
              AllOf(HasSubstr("\n{\"max_batch_size\" 4}\n"), Not(HasSubstr("\\n"))))
      << "protobuf's message shows where the error is on lines of their own";
  model = ReadModel(
      repository.string(), "m",
      {.config_json =
           R"({"max_batch_size": 70000, "parameters": {"architecture": {"string_value": "sanet"}}})"});
  EXPECT_THAT(std::string(model.status().message()),
              HasSubstr("the request's configuration: max_batch_size: is 70000"));
}

TEST(RepositoryTest, AnErrorInAHuggingFaceFolderNamesItsFile) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", kConfig);
  repository.Write("m/1/weights.pt", "w");
  repository.Write("m/config.json", "{");
  repository.Write("m/preprocessor_config.json", "{}");
  const auto why_not = [&] {
    return std::string(ReadModel(repository.string(), "m", {}).status().message());
  };
  EXPECT_THAT(why_not(), AllOf(HasSubstr("m/config.json: JSON at byte 1"), Not(HasSubstr("preprocessor"))));
  repository.Write("m/config.json", "{}");
  repository.Write("m/preprocessor_config.json", "[");
  EXPECT_THAT(why_not(), HasSubstr("m/preprocessor_config.json: JSON at byte 1"));
}

TEST(RepositoryTest, WarmUpFilesLieInTheModelsFolder) {
  TestRepository repository;
  const auto config = [](absl::string_view file) {
    return absl::StrCat(kConfig,
                        "model_warmup { name: \"w\" inputs { key: \"image\" value { data_type: TYPE_STRING "
                        "dims: 1 input_data_file: \"",
                        file, "\" } } }");
  };
  repository.Write("m/config.pbtxt", config("cat.jpg"));
  repository.Write("m/1/weights.pt", "w");
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("m/warmup/cat.jpg: cannot open it"));
  repository.Write("m/warmup/cat.jpg", "jpeg");
  const auto model = ReadModel(repository.string(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->settings.warmups.at(0).inputs.at(0).file_path, EndsWith("/m/warmup/cat.jpg"));
  repository.Write("m/config.pbtxt", config("../config.pbtxt"));
  EXPECT_THAT(ErrorOf(repository, "m"), HasSubstr("expected the plain name of a file"));
}

}  // namespace
}  // namespace saccade::server
