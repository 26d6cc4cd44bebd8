#include "models/networks/deeplab/network.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "models/api/error.h"
#include "models/networks/deeplab/deeplab.h"
#include "models/networks/deeplab/table.h"
#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

using ::testing::HasSubstr;

constexpr auto kKv = "deeplabv2_kao_kv";
constexpr auto kQkv = "deeplabv2_kao_qkv";
constexpr Size kBucket{96, 128};
const std::vector<Size> kSizes = {{96, 128}, {70, 89}, {96, 41}, {9, 100}};

struct Variant {
  const char* architecture;
  const char* head;
};
constexpr Variant kVariants[] = {
    {kKv, "kao"}, {kQkv, "kao"}, {kKv, "attention"}, {kKv, "attention_pool"}, {kKv, "aspp"}};

Options Narrow(const Variant& variant) {
  return {{"head", variant.head},  {"width", "0.25"}, {"blocks", "1,2,2,1"},
          {"head_channels", "64"}, {"heads", "2"},    {"classes", "7"}};
}

Options With(Options options, const std::string& name, const std::string& value) {
  options[name] = value;
  return options;
}

TensorMap Tensors(const std::string& architecture, const Options& options) {
  Ledger ledger;
  RecordDeepLab(ParseDeepLabOptions(architecture, options), {321, 321}, ledger);
  TensorMap tensors = testing::RandomTensors(ledger.tensors());
  for (auto& [name, tensor] : tensors) {
    // Keeps the residual sums from growing from block to block, and attention from seeing one key alone.
    if (name.ends_with("bn3.weight")) tensor.mul_(0.3);
    if (name.ends_with("coefficients.weight")) tensor.fill_(0.05);
  }
  return tensors;
}

// Neighbouring pixels are correlated, as white noise would make the network's map almost constant.
at::Tensor Smooth(Size size) {
  const at::Tensor coarse = at::randn({1, 3, size.height / 16 + 2, size.width / 16 + 2}).mul(2);
  return at::upsample_bilinear2d(coarse, {size.height, size.width}, false)[0];
}

Batch Pictures(const std::vector<Size>& sizes, Size bucket) {
  at::manual_seed(3);
  Batch batch = {at::zeros({static_cast<int64_t>(sizes.size()), 3, bucket.height, bucket.width}), {}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Size size = sizes[i];
    batch.pixels[static_cast<int64_t>(i)]
        .narrow(1, 0, size.height)
        .narrow(2, 0, size.width)
        .copy_(Smooth(size));
    batch.placements.push_back({{2 * size.height, size.width + 11}, size, bucket});
  }
  return batch;
}

Batch One(const Batch& batch, size_t index) {
  return {batch.pixels.narrow(0, static_cast<int64_t>(index), 1), {batch.placements[index]}};
}

// The same picture in a bucket of its own size.
Batch Unpadded(const Batch& batch, size_t index) {
  Batch alone = One(batch, index);
  Placement& placement = alone.placements.front();
  placement.bucket = placement.scaled;
  alone.pixels = alone.pixels.narrow(2, 0, placement.scaled.height).narrow(3, 0, placement.scaled.width);
  return alone;
}

at::Tensor OwnScores(const ScoreMaps& maps, size_t index) {
  const auto i = static_cast<int64_t>(index);
  return maps.scores[i].narrow(1, 0, maps.extents[i].height).narrow(2, 0, maps.extents[i].width);
}

// The largest difference, relative to the variation between the picture's positions.
double Difference(const at::Tensor& got, const at::Tensor& expected) {
  EXPECT_EQ(got.sizes(), expected.sizes());
  const at::Tensor varying = expected.sub(expected.mean({1, 2}, /*keepdim=*/true));
  return got.sub(expected).abs().max().item<double>() / varying.std().item<double>();
}

class DeepLabTest : public ::testing::TestWithParam<Variant> {
 protected:
  std::string architecture() const { return GetParam().architecture; }
  DeepLabNetwork Network(const Options& options) const {
    return {ParseDeepLabOptions(architecture(), options), Tensors(architecture(), options)};
  }

  c10::InferenceMode inference_;
};

TEST_P(DeepLabTest, AnswersDoNotDependOnTheBatch) {
  for (const char* exact : {"false", "true"}) {
    const DeepLabNetwork network = Network(With(Narrow(GetParam()), "exact", exact));
    const Batch batch = Pictures(kSizes, kBucket);
    const ScoreMaps together = network(batch);
    for (size_t i = 0; i < kSizes.size(); ++i) {
      EXPECT_TRUE(OwnScores(network(One(batch, i)), 0).equal(OwnScores(together, i))) << i;
    }
    EXPECT_FALSE(OwnScores(together, 0)
                     .narrow(1, 0, 2)
                     .narrow(2, 0, 5)
                     .equal(OwnScores(together, 1).narrow(1, 0, 2).narrow(2, 0, 5)));
  }
}

TEST_P(DeepLabTest, ExactIsWhatThePictureGivesUnpadded) {
  const Options options = Narrow(GetParam());
  const DeepLabNetwork exact = Network(With(options, "exact", "true"));
  const DeepLabNetwork plain = Network(With(options, "exact", "false"));
  const Batch batch = Pictures(kSizes, kBucket);
  const ScoreMaps exactly = exact(batch);
  const ScoreMaps roughly = plain(batch);
  for (size_t i = 0; i < kSizes.size(); ++i) {
    const at::Tensor expected = OwnScores(plain(Unpadded(batch, i)), 0);
    EXPECT_LT(Difference(OwnScores(exactly, i), expected), 1e-4) << i;
    // Without `exact` the scores differ, as biases in the padding reach the picture through its borders.
    if (i > 0) {
      EXPECT_GT(Difference(OwnScores(roughly, i), expected), 1e-2) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, DeepLabTest, ::testing::ValuesIn(kVariants), [](const auto& variant) {
  return std::string(variant.param.architecture == std::string(kQkv) ? "qkv_" : "kv_") + variant.param.head;
});

// oneDNN uses other code for the convolutions' real widths than for narrow ones.
TEST(DeepLab, AnswersDoNotDependOnTheBatchAtFullWidth) {
  const c10::InferenceMode inference;
  for (const char* head : {"kao", "aspp"}) {
    const Options options = {{"head", head}, {"blocks", "1,1,1,1"}};
    const DeepLabNetwork network(ParseDeepLabOptions(kKv, options), Tensors(kKv, options));
    const Batch batch = Pictures({{96, 128}, {70, 89}, {50, 128}}, kBucket);
    const ScoreMaps together = network(batch);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(OwnScores(network(One(batch, i)), 0).equal(OwnScores(together, i))) << head << i;
  }
}

TEST(DeepLab, LoadsAndLabelsThePictureAsSent) {
  const std::string path = ::testing::TempDir() + "/deeplab_test." + std::to_string(getpid());
  const Options options = Narrow(kVariants[0]);
  TensorMap tensors = Tensors(kKv, options);
  Batch batch = Pictures(kSizes, kBucket);
  // Centres the scores, so that several classes win somewhere in the second picture.
  const c10::InferenceMode inference;
  const DeepLabNetwork network(ParseDeepLabOptions(kKv, options), tensors);
  tensors["layer5.classifier.bias"].sub_(OwnScores(network(batch), 1).mean({1, 2}));
  tensors["fc.weight"] = at::randn({10, 512});  // a classifier that the backbone was trained with
  testing::SaveSafetensors(tensors, path);
  const auto model = LoadDeepLab(kKv, options, path, {});
  std::filesystem::resize_file(path, 0);

  const std::vector<TaskResult> clean = model->Run(batch);
  const auto& second = std::get<Segmentation>(clean[1]);
  EXPECT_EQ(second.height, 140);
  EXPECT_EQ(second.width, 100);
  EXPECT_EQ(second.areas.size(), 7U);
  EXPECT_GT(std::count_if(second.areas.begin(), second.areas.end(), [](int64_t area) { return area > 0; }),
            1);

  batch.pixels[1][0][3][4] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TaskResult> results = model->Run(batch);
  EXPECT_THAT(std::get<Failure>(results[1]).message, HasSubstr("not finite"));
  for (const size_t i : {0U, 2U, 3U})
    EXPECT_EQ(std::get<Segmentation>(results[i]).labels, std::get<Segmentation>(clean[i]).labels);
  std::filesystem::remove(path);
}

TEST(DeepLab, SaysWhatItsWeightsLack) {
  const std::string path = ::testing::TempDir() + "/deeplab_test." + std::to_string(getpid());
  const Options options = Narrow(kVariants[0]);
  TensorMap tensors = Tensors(kKv, options);
  tensors.erase("layer5.attention.query.bias");
  tensors.erase("layer3.1.bn2.running_var");
  testing::SaveSafetensors(tensors, path);
  try {
    LoadDeepLab(kKv, options, path, {});
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), HasSubstr("layer5.attention.query.bias"));
    EXPECT_THAT(error.what(), HasSubstr("layer3.1.bn2.running_var"));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace saccade::models
