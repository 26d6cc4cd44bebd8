#include "models/weights/quantized_file.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "models/api/error.h"
#include "models/testing/random_weights.h"
#include "models/weights/format/file_contents.h"
#include "models/weights/format/safetensors.h"
#include "models/weights/format/testing/files.h"
#include "models/weights/format/weights_format.h"
#include "models/weights/format/write_safetensors.h"
#include "models/weights/weights.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<TensorSpec> kExpected = {{"a.weight", {8, 4, 3, 3}}, {"a.bias", {8}}, {"b.weight", {5, 8}}};

class QuantizedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    tensors_ = testing::RandomTensors(kExpected);
    testing::SaveSafetensors(tensors_, source_);
    layer_ = {QuantizedWeight(tensors_.at("a.weight")), {.input = {0.25, 0}, .output = {0.5, 128}}};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write() const { WriteQuantized(source_, {{"a.weight", layer_}}, path_); }

  // Writes the file again, without the tensor if `values` is undefined.
  void Replace(const std::string& name, const at::Tensor& values) const {
    std::vector<TensorToWrite> tensors;
    const auto file = FileContents::Read(path_, kMaxWeightsFileBytes);
    for (const TensorEntry& entry : ParseWeights(file->bytes())) {
      if (entry.name != name) {
        tensors.push_back({entry.name, entry.type, entry.shape, DenseBytes(entry)});
      } else if (values.defined()) {
        tensors.push_back({name,
                           ElementType::kF32,
                           values.sizes().vec(),
                           {static_cast<const char*>(values.const_data_ptr()), values.nbytes()}});
      }
    }
    WriteSafetensors(std::move(tensors), path_);
  }

  std::string Error() const {
    try {
      LoadWeights(path_, kExpected);
      return "";
    } catch (const LoadError& error) {
      return error.what();
    }
  }

  const std::string folder_ = ::testing::TempDir() + "/quantized." + std::to_string(getpid());
  const std::string source_ = folder_ + "/weights";
  const std::string path_ = folder_ + "/weights.int8.safetensors";
  TensorMap tensors_;
  QuantizedLayer layer_;
};

TEST_F(QuantizedFileTest, IsLoadedAsWritten) {
  Write();
  EXPECT_TRUE(IsQuantized(path_));
  EXPECT_FALSE(IsQuantized(source_));
  const TensorMap loaded = LoadWeights(path_, kExpected).tensors;
  EXPECT_TRUE(loaded.at("a.weight").equal(layer_.weight.values));
  EXPECT_TRUE(loaded.at("a.weight_scale").equal(layer_.weight.scale.to(at::kFloat)));
  EXPECT_TRUE(loaded.at("a.grids").equal(at::tensor({0.25F, 0.F, 0.5F, 128.F})));
  EXPECT_TRUE(loaded.at("a.bias").equal(tensors_.at("a.bias")));
  EXPECT_TRUE(loaded.at("b.weight").equal(tensors_.at("b.weight")));
  EXPECT_EQ(loaded.file_names->at("a.weight"), "a.weight");
}

TEST_F(QuantizedFileTest, KeepsTheFilesOwnNames) {
  Write();
  const WeightNames names{.rename = [](const std::string& name) { return "new." + name; }};
  std::vector<TensorSpec> expected = kExpected;
  for (TensorSpec& spec : expected) spec.name = "new." + spec.name;
  const TensorMap loaded = LoadWeights(path_, expected, names).tensors;
  EXPECT_EQ(loaded.file_names->at("new.a.weight"), "a.weight");
  EXPECT_EQ(loaded.at("new.a.grids").numel(), 4);
}

TEST_F(QuantizedFileTest, ScalesThatCannotBeAreRefused) {
  const float nan = std::nanf("");
  const std::vector<std::tuple<std::string, at::Tensor, const char*>> cases = {
      {"a.weight_scale", {}, "'a.weight_scale' is missing"},
      {"a.weight_scale", at::full({7}, 1.0F), "F32 [7], expected F32 [8]"},
      {"a.weight_scale", at::full({8}, nan), "not a scale"},
      {"a.weight_scale", at::full({8}, 0.0F), "not a scale"},
      {"a.weight_scale", at::full({8}, -1.0F), "not a scale"},
      {"a.weight_scale", at::full({8}, INFINITY), "not a scale"},
      {"a.grids", {}, "'a.grids' is missing"},
      {"a.grids", at::full({3}, 1.0F), "F32 [3], expected F32 [4]"},
      {"a.grids", at::tensor({nan, 0.F, 1.F, 0.F}), "not two grids"},
      {"a.grids", at::tensor({1.F, 256.F, 1.F, 0.F}), "not two grids"},
      {"a.grids", at::tensor({1.F, 0.F, 1.F, 0.5F}), "not two grids"},
      {"a.grids", at::tensor({1.F, 0.F, 1.F, nan}), "not two grids"}};
  for (const auto& [name, values, told] : cases) {
    Write();
    Replace(name, values);
    EXPECT_THAT(Error(), AllOf(HasSubstr(told), HasSubstr("saccade quantize"), HasSubstr(path_)));
  }
}

// A batch norm may negate a channel, and -128 has no opposite.
TEST_F(QuantizedFileTest, AWeightWithoutAnOppositeIsRefused) {
  layer_.weight.values = layer_.weight.values.clone();
  layer_.weight.values[7][3][2][2] = -127;
  Write();
  EXPECT_EQ(Error(), "");
  layer_.weight.values[7][3][2][2] = -128;
  Write();
  EXPECT_THAT(Error(), AllOf(HasSubstr(path_), HasSubstr("'a.weight' is quantized (I8) and holds -128"),
                             HasSubstr("expected values from -127 to 127"), HasSubstr("saccade quantize")));
}

// The rest of the file is read when it is loaded, and not before that as well.
TEST_F(QuantizedFileTest, OnlyTheBeginningOfAStateDictIsRead) {
  std::ofstream(path_) << "PK\x03\x04 and no archive behind it";
  EXPECT_FALSE(IsQuantized(path_));
  std::ofstream(path_, std::ios::trunc) << testing::SmallSavedStream().substr(0, 20);
  EXPECT_FALSE(IsQuantized(path_));
}

// Without a read of it nobody knows whether it is quantized.
TEST_F(QuantizedFileTest, AStateDictHoldsNoQuantizedWeights) {
  using testing::PickledTensor;
  const std::string pickle =
      testing::PickledDict({{"a.weight", PickledTensor("CharStorage", "0", 1, 0, {1, 1, 1, 1}, {1, 1, 1, 1})},
                            {"a.weight_scale", PickledTensor("FloatStorage", "1", 1, 0, {1}, {1})},
                            {"a.grids", PickledTensor("FloatStorage", "2", 4, 0, {4}, {1})}});
  const std::string one = testing::Little(0x3F800000, 4);
  std::ofstream(path_) << testing::Zip(
      {{"w/data.pkl", pickle},
       {"w/data/0", "x"},
       {"w/data/1", one},
       {"w/data/2", one + testing::Little(0, 4) + one + testing::Little(0, 4)}});
  EXPECT_FALSE(IsQuantized(path_));
  try {
    LoadWeights(path_, {{"a.weight", {1, 1, 1, 1}}});
    FAIL() << "was loaded";
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("'a.weight' expected F16, BF16, F32 or F64, got I8 (a file of torch.save holds no "
                          "int8 weights: make a safetensors file of them with saccade quantize"));
  }
}

// Only a convolution can compute with it.
TEST_F(QuantizedFileTest, AnotherWeightInInt8IsOfAWrongType) {
  WriteQuantized(source_, {{"b.weight", {QuantizedWeight(tensors_.at("b.weight")), layer_.grids}}}, path_);
  EXPECT_THAT(Error(), AllOf(HasSubstr("wrong type"), HasSubstr("b.weight")));
}

TEST_F(QuantizedFileTest, AFailureLeavesTheOldFileAndNothingElse) {
  std::ofstream(path_) << "old";
  std::filesystem::remove(source_);
  EXPECT_THROW(Write(), LoadError);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  std::string content;
  std::ifstream(path_) >> content;
  EXPECT_EQ(content, "old");
  EXPECT_THROW(WriteSafetensors({}, folder_ + "/none/file"), LoadError);
  // A name that cannot be taken: the part that was written goes too.
  std::filesystem::create_directory(folder_ + "/taken");
  EXPECT_THROW(WriteSafetensors({}, folder_ + "/taken"), LoadError);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

TEST_F(QuantizedFileTest, MetadataAreReadBack) {
  const std::map<std::string, std::string> metadata = {{"figure", "top-1"}, {"a \"key\"", "0.95\n"}};
  WriteQuantized(source_, {{"a.weight", layer_}}, path_, metadata);
  EXPECT_EQ(SafetensorsMetadata(FileContents::Read(path_, kMaxWeightsFileBytes)->bytes()), metadata);
  EXPECT_TRUE(LoadWeights(path_, kExpected).tensors.at("a.weight").equal(layer_.weight.values));
  Write();
  EXPECT_TRUE(SafetensorsMetadata(FileContents::Read(path_, kMaxWeightsFileBytes)->bytes()).empty());
}

TEST_F(QuantizedFileTest, TheSourceIsReadBack) {
  Write();
  EXPECT_EQ(SourceDigest(path_), "");
  WriteQuantized(source_, {{"a.weight", layer_}}, path_, {{kSourceDigestName, "0123"}});
  EXPECT_EQ(SourceDigest(path_), "0123");
}

TEST_F(QuantizedFileTest, NamesAreEscaped) {
  const std::string name = "a \"quoted\" \\ name\n";
  WriteSafetensors({{name, ElementType::kF32, {1}, std::string(4, '\0')}}, path_);
  const auto file = FileContents::Read(path_, kMaxWeightsFileBytes);
  EXPECT_EQ(ParseWeights(file->bytes()).at(0).name, name);
}

}  // namespace
}  // namespace saccade::models
