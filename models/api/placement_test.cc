#include "models/api/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/api/error.h"

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ImageInput Detector(const std::string& buckets) {
  ImageInput input;
  input.fit = Fit::kKeepRatio;
  input.height = 896;
  input.width = 1280;
  input.short_side = 800;
  input.long_side = 1333;
  input.buckets = ParseBuckets("test", buckets);
  return input;
}

std::vector<Size> WarmBuckets(const ImageInput& input) {
  std::vector<Size> buckets;
  for (const Placement& placement : PlacementsToWarm(input)) {
    EXPECT_EQ(placement.sent, placement.bucket);
    EXPECT_EQ(placement.scaled, placement.bucket);
    EXPECT_EQ(placement.sent_depth, placement.depth);
    buckets.push_back(placement.bucket);
  }
  return buckets;
}

// Expected sizes are from torchvision 0.26: models.detection.transform.GeneralizedRCNNTransform(800, 1333,
// ...).
TEST(Place, ScalesAsTorchvisionDoes) {
  const ImageInput input = Detector("stride:32");
  EXPECT_EQ(PlacementOf(input, {480, 640}), (Placement{{480, 640}, {800, 1066}, {800, 1088}}));
  EXPECT_EQ(PlacementOf(input, {427, 640}).scaled, (Size{800, 1199}));
  EXPECT_EQ(PlacementOf(input, {640, 428}).scaled, (Size{1196, 800}));
  EXPECT_EQ(PlacementOf(input, {100, 500}).scaled, (Size{266, 1333}));
  EXPECT_EQ(PlacementOf(input, {3000, 4000}).scaled, (Size{800, 1066}));
  EXPECT_EQ(PlacementOf(input, {1, 8000}).scaled, (Size{1, 1333}));
}

// Expected sizes are from transformers 5.24: image_transforms.get_size_with_aspect_ratio(..., 800, 1333). A
// half is rounded to the even number, and the longer side is cut off where the division falls below a whole
// number.
TEST(Place, ScalesAsTransformersDoes) {
  ImageInput input = Detector("stride:32");
  input.exact_short_side = true;
  EXPECT_EQ(PlacementOf(input, {480, 640}).scaled, (Size{800, 1066}));
  EXPECT_EQ(PlacementOf(input, {1000, 2000}).scaled, (Size{666, 1333}));
  EXPECT_EQ(PlacementOf(input, {314, 559}).scaled, (Size{749, 1332}));
  EXPECT_EQ(PlacementOf(input, {604, 339}).scaled, (Size{1332, 748}));
  EXPECT_EQ(PlacementOf(input, {800, 1200}).scaled, (Size{800, 1200}));
  EXPECT_EQ(PlacementOf(input, {1, 8000}).scaled, (Size{1, 1333}));
}

// Expected sizes are from transformers 5.24: image_processing_yolos.get_size_with_aspect_ratio_yolos(...,
// 800, 1333). It makes nothing of the last one's shorter side.
TEST(Place, RoundsDownToMultiplesAsYolosDoes) {
  ImageInput input = Detector("stride:1");
  input.exact_short_side = true;
  input.multiple = 16;
  EXPECT_EQ(PlacementOf(input, {480, 640}), (Placement{{480, 640}, {800, 1056}, {800, 1056}}));
  EXPECT_EQ(PlacementOf(input, {427, 640}).scaled, (Size{800, 1184}));
  EXPECT_EQ(PlacementOf(input, {500, 100}).scaled, (Size{1328, 256}));
  EXPECT_EQ(PlacementOf(input, {314, 559}).scaled, (Size{736, 1328}));
  EXPECT_EQ(PlacementOf(input, {800, 1200}).scaled, (Size{800, 1200}));
  EXPECT_EQ(PlacementOf(input, {1, 8000}).scaled, (Size{16, 1328}));
  input.exact_short_side = false;
  EXPECT_EQ(PlacementOf(input, {480, 640}).scaled, (Size{800, 1056}));
}

// Expected sizes are from transformers 5.24: image_processing_dpt.get_resize_output_image_size(...,
// keep_aspect_ratio=True), apart from those of very long pictures, which it does not bound.
TEST(Place, ScalesAsLittleAsDptDoes) {
  ImageInput input;
  input.fit = Fit::kKeepRatio;
  input.either_side = true;
  input.height = input.width = 518;
  input.multiple = 14;
  input.long_side = 4096;
  EXPECT_EQ(PlacementOf(input, {480, 640}), (Placement{{480, 640}, {518, 686}, {518, 686}}));
  EXPECT_EQ(PlacementOf(input, {427, 640}).scaled, (Size{350, 518}));
  EXPECT_EQ(PlacementOf(input, {3000, 4000}).scaled, (Size{518, 686}));
  EXPECT_EQ(PlacementOf(input, {520, 300}).scaled, (Size{518, 294}));
  // Halves are rounded to the even number.
  EXPECT_EQ(PlacementOf(input, {518, 525}).scaled, (Size{518, 532}));
  EXPECT_EQ(PlacementOf(input, {511, 518}).scaled, (Size{504, 518}));
  EXPECT_EQ(PlacementOf(input, {1, 8000}).scaled, (Size{14, 518}));
  EXPECT_EQ(PlacementOf(input, {1000, 20000}).scaled, (Size{210, 4088}));
  EXPECT_EQ(LargestInput(input), (Size{518, 4096}));
  EXPECT_THAT(WarmBuckets(input), ElementsAre(Size{518, 518}));
  input.height = 384;
  input.width = 512;
  input.multiple = 32;
  EXPECT_EQ(PlacementOf(input, {640, 480}).scaled, (Size{672, 512}));
  EXPECT_EQ(PlacementOf(input, {427, 640}).scaled, (Size{384, 576}));
}

TEST(SizeBeforeCrop, IsTheModelsOrThatOfTheShorterSide) {
  ImageInput input;
  EXPECT_EQ(SizeBeforeCrop(input, {301, 467}), (Size{256, 397}));
  EXPECT_EQ(SizeBeforeCrop(input, {467, 301}), (Size{397, 256}));
  input.before_crop = {256, 320};
  EXPECT_EQ(SizeBeforeCrop(input, {301, 467}), (Size{256, 320}));
}

TEST(Place, LeavesSmallPicturesAsTheyAre) {
  ImageInput input = Detector("stride:16");
  input.short_side = 0;
  input.long_side = 1000;
  EXPECT_EQ(PlacementOf(input, {321, 500}), (Placement{{321, 500}, {321, 500}, {336, 512}}));
  EXPECT_EQ(PlacementOf(input, {2000, 500}).scaled, (Size{1000, 250}));
  EXPECT_EQ(PlacementOf(input, {1, 1}).bucket, (Size{16, 16}));
}

TEST(Place, TakesTheSmallestBucketOrScalesDown) {
  const ImageInput input = Detector("1088x1088,800x1088,1344x1344");
  EXPECT_EQ(PlacementOf(input, {480, 640}).bucket, (Size{800, 1088}));
  EXPECT_EQ(PlacementOf(input, {640, 480}).bucket, (Size{1088, 1088}));
  EXPECT_EQ(PlacementOf(input, {400, 700}).bucket, (Size{1344, 1344}));
  const ImageInput small = Detector("320x320,200x640");
  // 800 x 1066 is scaled down by 0.3, the largest scale that fits a bucket.
  EXPECT_EQ(PlacementOf(small, {480, 640}), (Placement{{480, 640}, {240, 320}, {320, 320}}));
  EXPECT_EQ(PlacementOf(small, {100, 500}).bucket, (Size{200, 640}));
}

TEST(Place, CropsToTheOneSize) {
  const ImageInput input;
  EXPECT_EQ(PlacementOf(input, {480, 640}), (Placement{{480, 640}, {224, 224}, {224, 224}}));
  EXPECT_THAT(WarmBuckets(input), ElementsAre(Size{224, 224}));
}

TEST(PlacementsToWarm, AreTheListedOnesOrTheNominal) {
  EXPECT_THAT(WarmBuckets(Detector("320x320,200x640")), ElementsAre(Size{320, 320}, Size{200, 640}));
  EXPECT_THAT(WarmBuckets(Detector("stride:32")), ElementsAre(Size{800, 1152}));
}

TEST(ParseBuckets, GivesBackWhatItRead) {
  for (const char* text : {"stride:1", "stride:32", "800x1344", "800x1344,1344x800"}) {
    EXPECT_EQ(AsText(ParseBuckets("test", text)), text);
  }
}

TEST(PlacementOfClip, FillsUpTheFrames) {
  ImageInput input;
  input.medium = Medium::kClip;
  input.clip = {.max_frames = 768, .frame_multiple = 16, .frames_per_second = 25};
  EXPECT_EQ(PlacementOfClip(input, {240, 320}, 33), (Placement{{240, 320}, {224, 224}, {224, 224}, 33, 48}));
  EXPECT_EQ(PlacementOfClip(input, {240, 320}, 32).depth, 32);
  EXPECT_EQ(PlacementsToWarm(input).at(0).depth, 64);
  input.clip.max_frames = 20;
  EXPECT_EQ(PlacementsToWarm(input).at(0).depth, 32);
}

TEST(PlacementOfVolume, LeavesItAsItIs) {
  EXPECT_EQ(PlacementOfVolume({30, 40}, 7), (Placement{{30, 40}, {30, 40}, {30, 40}, 7, 7}));
}

TEST(ParseBuckets, RefusesTheRest) {
  for (const char* text : {"", "32", "stride:", "stride:0", "stride:9000", "800", "800x", "x800", "800x0",
                           "800x800,", "800x800,800x800", "-1x5", "800X800", "800x800x3"}) {
    try {
      ParseBuckets("test", text);
      ADD_FAILURE() << text;
    } catch (const LoadError& error) {
      EXPECT_THAT(error.what(), HasSubstr("test: option buckets is '" + std::string(text) + "'"));
    }
  }
  std::string many = "1x1";
  for (int side = 2; side <= 65; ++side) many += ",1x" + std::to_string(side);
  EXPECT_THROW(ParseBuckets("test", many), LoadError);
}

TEST(LargestInput, IsWhatTheOptionsAllow) {
  ImageInput input;
  input.height = input.width = 224;
  EXPECT_EQ(LargestInput(input), (Size{224, 224}));
  input.fit = Fit::kKeepRatio;
  input.short_side = 128;
  input.long_side = 256;
  EXPECT_EQ(LargestInput(input), (Size{128, 256}));
  input.short_side = 0;
  EXPECT_EQ(LargestInput(input), (Size{256, 256}));
  input.buckets.sizes = {{64, 64}, {96, 128}, {100, 80}};
  EXPECT_EQ(LargestInput(input), (Size{96, 128}));
  input.medium = Medium::kVolume;
  EXPECT_EQ(LargestInput(input), Size{});
}

}  // namespace
}  // namespace saccade::models
