#include "models/weights/weights.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "models/api/error.h"
#include "models/testing/random_weights.h"
#include "models/weights/format/testing/files.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::vector<TensorSpec> kExpected = {{"stem.weight", {4, 3}},
                                           {"one.query", {2, 4}, "one"},
                                           {"one.value", {4, 4}, "one"},
                                           {"two.query", {2, 4}, "two"}};

class WeightsTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  LoadedWeights Load(const std::vector<TensorSpec>& held, const WeightNames& names = {}) const {
    TensorMap tensors;
    for (const TensorSpec& spec : held) tensors[spec.name] = at::randn(spec.shape);
    testing::SaveSafetensors(tensors, path_);
    return LoadWeights(path_, kExpected, names);
  }

  std::string Error(const std::vector<TensorSpec>& held, const WeightNames& names = {}) const {
    try {
      Load(held, names);
      return "";
    } catch (const LoadError& error) {
      return error.what();
    }
  }

  std::string path_ = ::testing::TempDir() + "/weights_test." + std::to_string(getpid());
};

TEST_F(WeightsTest, OptionalModulesMayBeAbsent) {
  EXPECT_THAT(Load(kExpected).absent, IsEmpty());
  const LoadedWeights loaded = Load({kExpected[0], kExpected[3]});
  EXPECT_THAT(loaded.absent, ElementsAre("one"));
  EXPECT_EQ(loaded.tensors.size(), 2U);
  EXPECT_THAT(Load({kExpected[0]}).absent, ElementsAre("one", "two"));
}

TEST_F(WeightsTest, AnOptionalModuleIsThereAsAWholeOrNotAtAll) {
  EXPECT_THAT(Error({kExpected[0], kExpected[1]}),
              AllOf(HasSubstr("missing (1):\n    'one.value' [4, 4]"), Not(HasSubstr("two."))));
  EXPECT_THAT(Error({kExpected[1], kExpected[2]}), HasSubstr("'stem.weight'"));
}

TEST_F(WeightsTest, TakesOldNamesAndPassesOverWhatIsNotNeeded) {
  WeightNames names;
  names.rename = [](const std::string& name) { return name == "conv.weight" ? "stem.weight" : name; };
  names.unused = {"fc."};
  const LoadedWeights loaded = Load({{"conv.weight", {4, 3}}, {"fc.weight", {9, 9}}}, names);
  EXPECT_EQ(loaded.tensors.count("stem.weight"), 1U);
  EXPECT_THAT(Error({{"conv.weight", {4, 3}}, {"stem.weight", {4, 3}}}, names), HasSubstr("twice"));
  EXPECT_THAT(Error({{"conv.weight", {4, 3}}, {"fd.weight", {9}}}, names), HasSubstr("surplus (1)"));
}

// As torch.nn.DataParallel saves.
TEST_F(WeightsTest, TakesNamesThatAllBeginWithTheWrappersPrefix) {
  EXPECT_EQ(Load({{"module.stem.weight", {4, 3}}}).tensors.count("stem.weight"), 1U);
  EXPECT_EQ(Load({{"model.stem.weight", {4, 3}}}).tensors.count("stem.weight"), 1U);
  EXPECT_EQ(Load({{"model._orig_mod.module.stem.weight", {4, 3}}}).tensors.count("stem.weight"), 1U);
  EXPECT_THAT(Error({{"module.stem.weight", {4, 3}}, {"stem.weight", {4, 3}}}),
              HasSubstr("'module.stem.weight'"));
}

TEST_F(WeightsTest, AFileWithoutTensorsLacksAllOfThem) {
  EXPECT_THAT(Error({}), HasSubstr("missing (1):\n    'stem.weight' [4, 3]"));
}

TEST_F(WeightsTest, ManyComplaintsAreCounted) {
  std::vector<TensorSpec> held = {kExpected[0]};
  for (int i = 0; i < 25; ++i) held.push_back({"extra" + std::to_string(i), {1}});
  EXPECT_THAT(Error(held), AllOf(HasSubstr("surplus (25)"), HasSubstr("and 5 more")));
}

TEST_F(WeightsTest, AnotherShapeIsToldWithBoth) {
  EXPECT_THAT(Error({{"stem.weight", {3, 4}}}), HasSubstr("'stem.weight' expected [4, 3], got [3, 4]"));
}

// A file that its owner cuts short while a network is made from it, which reads the tensors.
TEST_F(WeightsTest, TensorsStayWhateverHappensToTheFile) {
  const at::Tensor large = at::randn({1000, 100});
  testing::SaveSafetensors({{"w", large}}, path_);
  const LoadedWeights loaded = LoadWeights(path_, {{"w", {1000, 100}}});
  std::filesystem::resize_file(path_, 0);
  EXPECT_TRUE(at::equal(loaded.tensors.at("w"), large));
}

// Two names of one tensor, and a part of it under a third, as models with tied weights are saved.
TEST_F(WeightsTest, MemoryThatTensorsShareStaysWithTheLastOfThem) {
  constexpr int kElements = 16'384;
  const auto tensor = [](int offset, int size) {
    return testing::PickledTensor("FloatStorage", "0", kElements, offset, {size}, {1});
  };
  std::string ones;
  for (int i = 0; i < kElements; ++i) ones += std::string("\x00\x00\x80\x3F", 4);
  std::ofstream(path_, std::ios::binary)
      << testing::Zip({{"w/data.pkl", testing::PickledDict({{"a", tensor(0, kElements)},
                                                            {"b", tensor(0, kElements)},
                                                            {"c", tensor(4096, 8192)}})},
                       {"w/byteorder", "little"},
                       {"w/data/0", ones}});
  LoadedWeights loaded = LoadWeights(path_, {{"a", {kElements}}, {"b", {kElements}}, {"c", {8192}}});
  loaded.tensors.erase("a");
  EXPECT_TRUE(at::equal(loaded.tensors.at("b"), at::ones({kElements})));
  loaded.tensors.erase("b");
  EXPECT_TRUE(at::equal(loaded.tensors.at("c"), at::ones({8192})));
}

// A file with one tensor 'w' of two elements, 1 and -2.
class ElementsTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  at::Tensor Load(const std::string& type, const std::string& data, const std::string& shape,
                  std::vector<int64_t> expected) {
    const std::string header = R"({"w":{"dtype":")" + type + R"(","shape":)" + shape +
                               R"(,"data_offsets":[0,)" + std::to_string(data.size()) + "]}}" +
                               std::string(padding_, ' ');
    std::ofstream(path_, std::ios::binary) << testing::Safetensors(header, data);
    return LoadWeights(path_, {{"w", std::move(expected)}}).tensors.at("w");
  }

  size_t padding_ = 0;
  std::string path_ = ::testing::TempDir() + "/elements_test." + std::to_string(getpid());
};

TEST_F(ElementsTest, OfEveryFloatingTypeAreRead) {
  const at::Tensor expected = at::tensor({1.0, -2.0});
  const std::pair<std::string, std::string> written[] = {
      {"F16", std::string("\x00\x3C\x00\xC0", 4)},
      {"BF16", std::string("\x80\x3F\x00\xC0", 4)},
      {"F32", std::string("\x00\x00\x80\x3F\x00\x00\x00\xC0", 8)},
      {"F64", std::string("\x00\x00\x00\x00\x00\x00\xF0\x3F\x00\x00\x00\x00\x00\x00\x00\xC0", 16)},
  };
  for (const auto& [type, data] : written) {
    // Varies the header's length, and with it the alignment of the data.
    for (padding_ = 0; padding_ < 8; ++padding_)
      EXPECT_TRUE(at::equal(Load(type, data, "[2]", {2}).to(at::kDouble), expected))
          << type << " " << padding_;
  }
}

TEST_F(ElementsTest, OfOtherTypesAreRefusedByTheirNames) {
  try {
    Load("I32", std::string(8, '\x01'), "[2]", {2});
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'w' expected F16, BF16, F32 or F64, got I32"));
  }
}

TEST_F(ElementsTest, ThereMayBeNone) { EXPECT_EQ(Load("F32", "", "[0,3]", {0, 3}).numel(), 0); }

}  // namespace
}  // namespace saccade::models
