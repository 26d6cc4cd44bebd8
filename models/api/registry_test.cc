#include "models/api/registry.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "models/api/error.h"
#include "models/api/model.h"
#include "models/networks/mobile/parameters.h"
#include "models/testing/batches.h"
#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Options kNarrow = {{"width", "0.25"}, {"classes", "10"}, {"input_size", "64"}};

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  TensorMap Tensors(const Options& options) const {
    return testing::RandomTensors(MobileParameters(MakeMobilePlan(ParseMobileOptions("sanet", options))));
  }

  std::unique_ptr<Model> Make(const Options& options, const TensorMap& tensors) const {
    testing::SaveSafetensors(tensors, path_);
    return Load("sanet", options, path_);
  }

  std::string Error(const TensorMap& tensors) const {
    try {
      Make(kNarrow, tensors);
      return "";
    } catch (const LoadError& error) {
      return error.what();
    }
  }

  std::string folder_ = ::testing::TempDir() + "/registry_test." + std::to_string(getpid());
  std::string path_ = folder_ + "/weights";
};

const std::vector<float>& Logits(const TaskResult& result) { return std::get<Classification>(result).logits; }

TEST_F(RegistryTest, DescribesAndCountsEveryArchitecture) {
  const std::vector<std::string> names = Architectures();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    const Description description = Describe(name, {});
    EXPECT_EQ(description.architecture, name);
    EXPECT_EQ(Count(name, {}).AllParameters(), description.parameters) << name;
  }
}

TEST_F(RegistryTest, ListsTheArchitecturesIfThereIsNoneOfTheName) {
  try {
    Count("sannet", {});
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_THAT(
        error.what(),
        AllOf(HasSubstr(
                  "unknown architecture 'sannet'; did you mean 'sanet'?; the architectures are: attnnet, "),
              HasSubstr("resnet50, sanet")));
  }
}

TEST_F(RegistryTest, DescribesWithoutWeights) {
  const Description full = Describe("sanet", {});
  EXPECT_EQ(full.input.height, 224);
  EXPECT_EQ(full.input.short_side, 256);
  EXPECT_EQ(full.classes, 1000);
  EXPECT_EQ(full.parameters, 3'482'152);
  EXPECT_EQ(full.options.at("attention"), "sao");
  const Description narrow = Describe("sanet", kNarrow, std::vector<std::string>(10, "label"));
  EXPECT_EQ(narrow.input.width, 64);
  EXPECT_EQ(narrow.input.short_side, 73);
  EXPECT_EQ(narrow.labels.size(), 10U);
  EXPECT_THROW(Describe("sanet", kNarrow, {"one"}), LoadError);
}

TEST_F(RegistryTest, CountsByLayer) {
  const Counts counts = Count("sanet", {});
  EXPECT_EQ(counts.Parameters(), 3'449'408);
  EXPECT_EQ(counts.layers.front().name, "stem");
  EXPECT_EQ(counts.layers.back().operation, "linear, 1280 to 1000");
}

// Dynamic batching must not change a result.
TEST_F(RegistryTest, AnswersDoNotDependOnTheBatch) {
  for (const Options& options : {kNarrow, Options{}, Options{{"attention", "none"}, {"width", "0.25"}}}) {
    const auto model = Make(options, Tensors(options));
    const int64_t size = model->description().input.height;
    const at::Tensor pictures = at::randn({8, 3, size, size});
    const std::vector<TaskResult> together = model->Run(testing::WholeBatch(pictures));
    ASSERT_EQ(together.size(), 8U);
    EXPECT_NE(Logits(together[0]), Logits(together[1]));
    for (const int64_t first : {0, 5}) {
      for (const int64_t count : {1, 2, 3}) {
        const std::vector<TaskResult> some =
            model->Run(testing::WholeBatch(pictures.narrow(0, first, count)));
        for (int64_t i = 0; i < count; ++i) {
          ASSERT_EQ(Logits(some[static_cast<size_t>(i)]), Logits(together[static_cast<size_t>(first + i)]))
              << first << " " << count;
        }
      }
    }
  }
}

TEST_F(RegistryTest, AnswersDoNotDependOnTheLayout) {
  const auto model = Make(kNarrow, Tensors(kNarrow));
  const at::Tensor pictures = at::randn({3, 3, 64, 64});
  const std::vector<TaskResult> planar = model->Run(testing::WholeBatch(pictures));
  const std::vector<TaskResult> interleaved =
      model->Run(testing::WholeBatch(pictures.contiguous(at::MemoryFormat::ChannelsLast)));
  const std::vector<TaskResult> strided =
      model->Run(testing::WholeBatch(at::cat({pictures, pictures}, 3).narrow(3, 0, 64)));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(Logits(planar[i]), Logits(interleaved[i]));
    EXPECT_EQ(Logits(planar[i]), Logits(strided[i]));
  }
}

TEST_F(RegistryTest, RunsOnManyThreads) {
  const auto model = Make(kNarrow, Tensors(kNarrow));
  const at::Tensor pictures = at::randn({2, 3, 64, 64});
  const std::vector<float> expected = Logits(model->Run(testing::WholeBatch(pictures))[1]);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> got(4);
  for (std::vector<float>& logits : got) {
    threads.emplace_back([&] { logits = Logits(model->Run(testing::WholeBatch(pictures))[1]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& logits : got) EXPECT_EQ(logits, expected);
}

TEST_F(RegistryTest, APictureThatIsNotFiniteFailsAlone) {
  const auto model = Make(kNarrow, Tensors(kNarrow));
  at::Tensor pictures = at::randn({3, 3, 64, 64});
  const std::vector<TaskResult> clean = model->Run(testing::WholeBatch(pictures));
  pictures[1][2][63][63] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TaskResult> results = model->Run(testing::WholeBatch(pictures));
  EXPECT_EQ(Logits(results[0]), Logits(clean[0]));
  EXPECT_THAT(std::get<Failure>(results[1]).message, HasSubstr("not finite"));
  EXPECT_EQ(Logits(results[2]), Logits(clean[2]));
}

TEST_F(RegistryTest, ALogitThatIsNotFiniteIsAFailure) {
  TensorMap tensors = Tensors(kNarrow);
  tensors["classifier.weight"].fill_(3e38);
  const std::vector<TaskResult> results =
      Make(kNarrow, tensors)->Run(testing::WholeBatch(at::randn({1, 3, 64, 64})));
  EXPECT_THAT(std::get<Failure>(results[0]).message, HasSubstr("logit"));
}

TEST_F(RegistryTest, RefusesOtherShapesAndTypes) {
  const auto model = Make(kNarrow, Tensors(kNarrow));
  EXPECT_THROW(model->Run(testing::WholeBatch(at::randn({1, 3, 64, 65}))), c10::Error);
  EXPECT_THROW(model->Run(testing::WholeBatch(at::randn({1, 1, 64, 64}))), c10::Error);
  EXPECT_THROW(model->Run(testing::WholeBatch(at::randn({3, 64, 64}))), c10::Error);
  EXPECT_THROW(model->Run(testing::WholeBatch(at::randn({0, 3, 64, 64}))), c10::Error);
  EXPECT_THROW(model->Run(testing::WholeBatch(at::randn({1, 3, 64, 64}, at::kDouble))), c10::Error);
}

TEST_F(RegistryTest, ListsAllThatDoesNotFitInOneError) {
  TensorMap tensors = Tensors(kNarrow);
  tensors.erase("stem.bn.bias");
  tensors.erase("head.conv.weight");
  tensors["more"] = at::randn({2, 2});
  tensors["stem.bn.num_batches_tracked"] = at::randn({1});
  tensors["classifier.bias"] = at::randn({11});
  EXPECT_THAT(
      Error(tensors),
      AllOf(HasSubstr(path_), HasSubstr("missing (2):"), HasSubstr("'stem.bn.bias' [8]"),
            HasSubstr("'head.conv.weight' [320, 80, 1, 1]"), HasSubstr("surplus (1):\n    'more' [2, 2]"),
            HasSubstr("'classifier.bias' expected [10], got [11]"), Not(HasSubstr("tracked"))));
}

TEST_F(RegistryTest, TellsWhatIsWrongWithTheFile) {
  EXPECT_THROW(Load("sanet", {}, folder_ + "/none"), LoadError);
  testing::SaveSafetensors(Tensors(kNarrow), path_);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  try {
    Load("sanet", kNarrow, path_);
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(path_), HasSubstr("cut short")));
  }
}

TEST_F(RegistryTest, TheFileMayGoOnceLoaded) {
  const auto model = Make(kNarrow, Tensors(kNarrow));
  const at::Tensor picture = at::randn({1, 3, 64, 64});
  const std::vector<float> before = Logits(model->Run(testing::WholeBatch(picture))[0]);
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(Logits(model->Run(testing::WholeBatch(picture))[0]), before);
}

}  // namespace
}  // namespace saccade::models
