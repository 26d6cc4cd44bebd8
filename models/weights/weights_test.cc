#include "models/weights/weights.h"

#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "models/error.h"
#include "models/testing/random_weights.h"

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

}  // namespace
}  // namespace saccade::models
