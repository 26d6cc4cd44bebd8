#include "server/catalog/model_kinds.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

class KindOfFilesTest : public ::testing::Test {
 protected:
  static ModelSettings Of(Backend backend) {
    ModelSettings settings;
    settings.name = "m";
    settings.backend = backend;
    return settings;
  }
  ModelVersion Write(const std::string& file, const std::string& text) const {
    repository_.Write(file, text);
    ModelVersion version;
    version.weights_path = (repository_.path() / file).string();
    return version;
  }
  std::optional<std::string> Kind(const ModelSettings& settings, const ModelVersion& version,
                                  bool by_samples = false) {
    return KindOfFiles(settings, version, by_samples, &digests_);
  }

  const TestRepository repository_;
  FileDigests digests_;
};

TEST_F(KindOfFilesTest, CopiesOfAGraphAreOneKind) {
  const ModelSettings settings = Of(Backend::kOnnxruntime);
  const auto kind = Kind(settings, Write("a/1/model.onnx", "graph"));
  ASSERT_TRUE(kind);
  EXPECT_NE(*kind, "");
  EXPECT_EQ(Kind(settings, Write("b/3/model.onnx", "graph")), kind);
  EXPECT_NE(Kind(settings, Write("c/1/model.onnx", "other")), kind);
}

TEST_F(KindOfFilesTest, FilesBesideAGraphCountAndHiddenOnesDoNot) {
  const ModelSettings settings = Of(Backend::kOpenvino);
  const ModelVersion version = Write("a/1/model.xml", "graph");
  repository_.Write("a/1/model.bin", "weights");
  const auto kind = Kind(settings, version);
  ASSERT_TRUE(kind);
  repository_.Write("a/1/.model.bin.partial", "weig");
  repository_.Write("a/1/.git/config", "");
  EXPECT_EQ(Kind(settings, version), kind);
  repository_.Write("a/1/model.bin", "other weights");
  EXPECT_NE(Kind(settings, version), kind);
  repository_.Write("a/1/model.bin", "weights");
  EXPECT_EQ(Kind(settings, version), kind);
  repository_.Write("a/1/more/data.bin", "");
  EXPECT_NE(Kind(settings, version), kind);
}

TEST_F(KindOfFilesTest, OfAProgramItsFileAloneCounts) {
  const ModelSettings settings = Of(Backend::kPytorch);
  const ModelVersion version = Write("a/1/model.pt", "program");
  const auto kind = Kind(settings, version);
  ASSERT_TRUE(kind);
  EXPECT_NE(*kind, "");
  repository_.Write("a/1/notes.txt", "");
  EXPECT_EQ(Kind(settings, version), kind);
}

TEST_F(KindOfFilesTest, WeightsOfOurNetworksCountOnlyIfSamplesChooseThePrecision) {
  ModelSettings settings = Of(Backend::kSaccade);
  ModelVersion version = Write("a/1/weights.safetensors", "weights");
  repository_.Write("a/samples/1.jpg", "picture");
  settings.samples = {(repository_.path() / "a/samples/1.jpg").string()};
  EXPECT_EQ(Kind(settings, version), "");
  const auto kind = Kind(settings, version, /*by_samples=*/true);
  ASSERT_TRUE(kind);
  EXPECT_NE(*kind, "");
  repository_.Write("a/samples/1.jpg", "another picture");
  EXPECT_NE(Kind(settings, version, true), kind);
  repository_.Write("a/samples/1.jpg", "picture");
  EXPECT_EQ(Kind(settings, version, true), kind);
  version.int8_weights_path = Write("a/1/weights.int8.safetensors", "quantized").weights_path;
  EXPECT_NE(Kind(settings, version, true), kind);
}

TEST_F(KindOfFilesTest, LayersThatAreQuantizedAnewMakeAnotherKind) {
  const ModelSettings settings = Of(Backend::kSaccade);
  ModelVersion version = Write("a/1/weights.safetensors", "weights");
  const std::string floats = KindOfSettings(settings, version, 2);
  version.int8_weights_path = Write("a/1/weights.int8.safetensors", "one").weights_path;
  const std::string one = KindOfSettings(settings, version, 2);
  EXPECT_NE(one, floats);
  Write("a/1/weights.int8.safetensors", "more layers");
  EXPECT_NE(KindOfSettings(settings, version, 2), one);
}

TEST_F(KindOfFilesTest, FilesOutsideOfTheRepositoryAreNotRead) {
  const TestRepository elsewhere;
  elsewhere.Write("data.bin", "weights");
  ModelSettings settings = Of(Backend::kOnnxruntime);
  const ModelVersion version = Write("a/1/model.onnx", "graph");
  std::filesystem::create_symlink(elsewhere.path() / "data.bin", repository_.path() / "a/1/data.bin");
  EXPECT_TRUE(Kind(settings, version));
  settings.repository = repository_.string();
  EXPECT_EQ(Kind(settings, version), std::nullopt);
}

TEST_F(KindOfFilesTest, FilesThatCannotBeReadHaveNoKind) {
  ModelVersion version;
  version.weights_path = (repository_.path() / "a/1/model.onnx").string();
  EXPECT_EQ(Kind(Of(Backend::kOnnxruntime), version), std::nullopt);
  EXPECT_EQ(Kind(Of(Backend::kPytorch), version), std::nullopt);
}

TEST_F(KindOfFilesTest, SettingsThatChangeTheCostMakeAnotherKind) {
  const ModelVersion version = Write("a/1/model.onnx", "graph");
  ModelSettings settings = Of(Backend::kOnnxruntime);
  settings.outputs = {{.name = "y", .dims = {5}}};
  const std::string kind = KindOfSettings(settings, version, 2);
  EXPECT_NE(kind, "");
  ModelSettings other = settings;
  other.name = "another name";
  EXPECT_EQ(KindOfSettings(other, version, 2), kind);
  EXPECT_NE(KindOfSettings(other, version, 4), kind);
  other.batching.max_batch_size = 7;
  EXPECT_NE(KindOfSettings(other, version, 2), kind);
  other = settings;
  other.outputs[0].dims = {6};
  EXPECT_NE(KindOfSettings(other, version, 2), kind);
  other = settings;
  other.options["precision"] = "bf16";
  EXPECT_NE(KindOfSettings(other, version, 2), kind);
  other = settings;
  other.warmups.emplace_back();
  EXPECT_NE(KindOfSettings(other, version, 2), kind);
  other = settings;
  other.backend = Backend::kOpenvino;
  EXPECT_NE(KindOfSettings(other, version, 2), kind);
  other.gpus = {0};
  EXPECT_EQ(KindOfSettings(other, version, 2), "");
  EXPECT_EQ(KindOfSettings(Of(Backend::kEnsemble), {}, 2), "");
}

MeasuredKind WithThreads(int threads) {
  MeasuredKind kind;
  kind.threads = threads;
  return kind;
}

MeasuredKind UsedAt(int64_t use) {
  MeasuredKind kind;
  kind.last_use = use;
  return kind;
}

TEST(ModelKindsTest, TheKindThatWasNotUsedForTheLongestIsForgotten) {
  ModelKinds kinds({{"early", UsedAt(1)}, {"late", UsedAt(2)}}, nullptr);
  for (size_t i = 2; i < kMaxKinds; ++i) kinds.Keep(absl::StrCat(i), WithThreads(3));
  EXPECT_TRUE(kinds.Find("early"));
  kinds.Keep("one more", WithThreads(3));
  EXPECT_FALSE(kinds.Find("late"));
  EXPECT_TRUE(kinds.Find("early"));
  EXPECT_TRUE(kinds.Find("2"));
  EXPECT_TRUE(kinds.Find("one more"));
}

TEST(ModelKindsTest, AllKindsAreSavedWithTheirLastUse) {
  std::map<std::string, MeasuredKind> saved;
  ModelKinds kinds({{"a", UsedAt(7)}}, [&](const auto& all) { saved = all; });
  kinds.Keep("b", WithThreads(2));
  ASSERT_EQ(saved.size(), 2);
  EXPECT_EQ(saved["a"].last_use, 7);
  EXPECT_GT(saved["b"].last_use, 7);
  kinds.Keep("", WithThreads(2));
  EXPECT_EQ(saved.size(), 2);
}

}  // namespace
}  // namespace saccade::server
