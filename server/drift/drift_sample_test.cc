#include "server/drift/drift_sample.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pair;

constexpr int64_t kSide = 100;

// A picture of 100 x 80 pixels in a bucket of 128 x 96, normalised, with garbage in the padding.
struct Picture {
  models::ImageInput input;
  models::Placement placement = {.sent = {kSide, 80}, .scaled = {kSide, 80}, .bucket = {128, 96}};
  std::vector<float> pixels = std::vector<float>(3 * 128 * 96, 1e30F);

  template <typename Value>
  explicit Picture(Value value) {
    for (int64_t channel = 0; channel < 3; ++channel) {
      for (int64_t y = 0; y < placement.scaled.height; ++y) {
        for (int64_t x = 0; x < placement.scaled.width; ++x)
          pixels[(channel * 128 + y) * 96 + x] = (value(y, x) - input.mean[channel]) / input.std[channel];
      }
    }
  }

  DriftSample Sampled() const {
    DriftSample sample;
    SampleInput(input, placement, absl::Span<const float>(pixels), sample);
    return sample;
  }
};

double Of(const DriftSample& sample, Feature feature) {
  return sample.values[static_cast<size_t>(feature)].value_or(-99);
}

TEST(DriftSampleTest, MeasuresThePictureAndNotItsPadding) {
  const DriftSample grey = Picture([](int64_t, int64_t) { return 0.5F; }).Sampled();
  EXPECT_THAT(Of(grey, Feature::kPixels), DoubleNear(std::log2(8000), 1e-9));
  EXPECT_THAT(Of(grey, Feature::kBrightness), DoubleNear(0.5, 1e-6));
  EXPECT_THAT(Of(grey, Feature::kContrast), DoubleNear(0, 1e-3));
  EXPECT_LT(Of(grey, Feature::kSharpness), -15);

  const DriftSample halves = Picture([](int64_t y, int64_t) { return y < 50 ? 0.2F : 0.8F; }).Sampled();
  EXPECT_THAT(Of(halves, Feature::kBrightness), DoubleNear(0.5, 0.02));
  EXPECT_THAT(Of(halves, Feature::kContrast), DoubleNear(0.3, 0.01));
}

TEST(DriftSampleTest, ABlurredPictureIsLessSharp) {
  const auto stripes = [](double width) {
    return Picture(
               [width](int64_t, int64_t x) { return static_cast<float>(0.5 + 0.4 * std::sin(x / width)); })
        .Sampled();
  };
  EXPECT_GT(Of(stripes(1), Feature::kSharpness), Of(stripes(4), Feature::kSharpness) + 2);
  EXPECT_GT(Of(stripes(4), Feature::kSharpness), Of(stripes(16), Feature::kSharpness) + 2);
}

TEST(DriftSampleTest, EqualPicturesHaveEqualFingerprints) {
  const auto picture = [](float white) {
    return Picture([white](int64_t y, int64_t x) { return x * y / 1e4F * white; });
  };
  EXPECT_EQ(picture(1).Sampled().fingerprint, picture(1).Sampled().fingerprint);
  EXPECT_NE(picture(1).Sampled().fingerprint, picture(0.99F).Sampled().fingerprint);
  EXPECT_NE(picture(1).Sampled().fingerprint, 0U);
}

TEST(DriftSampleTest, InputThatIsNotThereIsNotRead) {
  Picture picture([](int64_t, int64_t) { return 0.5F; });
  picture.pixels.resize(3 * kSide * 80);
  EXPECT_EQ(Of(picture.Sampled(), Feature::kBrightness), -99) << "a tensor without its padding";
  EXPECT_GT(Of(picture.Sampled(), Feature::kPixels), 0);
  picture.pixels.resize(3 * 128 * 96);
  picture.placement.scaled = {2, 80};
  EXPECT_EQ(Of(picture.Sampled(), Feature::kBrightness), -99) << "too narrow for neighbours";
  picture.input.medium = models::Medium::kVolume;
  picture.placement.scaled = {kSide, 80};
  EXPECT_EQ(Of(picture.Sampled(), Feature::kBrightness), -99);
}

TEST(DriftSampleTest, EachTasksAnswers) {
  const auto sample_of = [](const models::TaskResult& result) {
    DriftSample sample;
    SampleAnswer(result, sample);
    return sample;
  };
  const DriftSample softmax = sample_of(models::Classification{.logits = {0, std::log(3.0F), -1000}});
  EXPECT_THAT(Of(softmax, Feature::kScore), DoubleNear(0.75, 1e-6));
  EXPECT_THAT(softmax.classes, ElementsAre(Pair(1, 1)));
  const DriftSample sigmoid =
      sample_of(models::Classification{.logits = {0, -3}, .function = models::LogitFunction::kSigmoid});
  EXPECT_THAT(Of(sigmoid, Feature::kScore), DoubleNear(0.5, 1e-6));
  const DriftSample exp = sample_of(
      models::Classification{.logits = {std::log(0.5F), -3}, .function = models::LogitFunction::kExp});
  EXPECT_THAT(Of(exp, Feature::kScore), DoubleNear(0.5, 1e-6));
  models::Detections found;
  for (const auto& [score, label] : {std::pair(0.9F, 4), std::pair(0.3F, 2)}) {
    found.items.emplace_back();
    found.items.back().score = score;
    found.items.back().label = label;
  }
  const DriftSample two = sample_of(found);
  EXPECT_THAT(Of(two, Feature::kScore), DoubleNear(0.9, 1e-6));
  EXPECT_EQ(Of(two, Feature::kFound), 2);
  EXPECT_THAT(two.classes, ElementsAre(Pair(4, 1), Pair(2, 1)));
  const DriftSample none = sample_of(models::Actions{});
  EXPECT_EQ(Of(none, Feature::kScore), 0);
  EXPECT_EQ(Of(none, Feature::kFound), 0);
  const DriftSample areas =
      sample_of(models::Segmentation{.height = 2, .width = 2, .labels = {0, 2, 2, 2}, .areas = {1, 0, 3}});
  EXPECT_THAT(areas.classes, ElementsAre(Pair(0, 0.25), Pair(2, 0.75)));
  EXPECT_EQ(Of(areas, Feature::kScore), -99);
}

}  // namespace
}  // namespace saccade::server
