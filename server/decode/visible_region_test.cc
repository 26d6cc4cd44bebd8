#include "server/decode/visible_region.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

models::ImageInput Cropped() {
  return {.fit = models::Fit::kCropCentre, .height = 224, .width = 224, .short_side = 256};
}

void Expect(const VisibleRegion& part, double x, double y, double width, double height) {
  EXPECT_DOUBLE_EQ(part.x, x);
  EXPECT_DOUBLE_EQ(part.y, y);
  EXPECT_DOUBLE_EQ(part.width, width);
  EXPECT_DOUBLE_EQ(part.height, height);
}

TEST(VisibleRegionTest, IsTheMiddleOfACroppedPicture) {
  // Scaled to 512 x 256, of which columns 144 to 368 and rows 16 to 240 are cut out.
  Expect(VisibleRegionOf(Cropped(), {.height = 512, .width = 1024}), 288, 32, 448, 448);
  Expect(VisibleRegionOf(Cropped(), {.height = 1024, .width = 512}), 32, 288, 448, 448);
  // A picture that is enlarged.
  Expect(VisibleRegionOf(Cropped(), {.height = 64, .width = 64}), 4, 4, 56, 56);
}

TEST(VisibleRegionTest, RoundsHalfAPixelAsTheModelSays) {
  models::ImageInput input = Cropped();
  // Not scaled; 17.5 columns are left on each side.
  Expect(VisibleRegionOf(input, {.height = 256, .width = 259}), 18, 16, 224, 224);
  input.crop_rounds_down = true;
  Expect(VisibleRegionOf(input, {.height = 256, .width = 259}), 17, 16, 224, 224);
}

TEST(VisibleRegionTest, IsTheMiddleOfAPictureWhoseProportionsChange) {
  models::ImageInput input = Cropped();
  input.before_crop = {.height = 256, .width = 448};
  // Scaled to 448 x 256, of which columns 112 to 336 and rows 16 to 240 are cut out.
  Expect(VisibleRegionOf(input, {.height = 512, .width = 448}), 112, 32, 224, 448);
}

TEST(VisibleRegionTest, ReachesBeyondAPictureThatIsPadded) {
  models::ImageInput input = Cropped();
  input.short_side = 112;
  // Scaled to 112 x 112, with a border of 56 around it.
  Expect(VisibleRegionOf(input, {.height = 224, .width = 224}), -112, -112, 448, 448);
}

TEST(VisibleRegionTest, IsAllOfAPictureThatIsScaledAsAWhole) {
  const models::ImageInput input{.fit = models::Fit::kKeepRatio, .short_side = 800, .long_side = 1333};
  Expect(VisibleRegionOf(input, {.height = 480, .width = 640}), 0, 0, 640, 480);
}

TEST(VisibleRegionTest, IsAllOfAVolumesPlane) {
  models::ImageInput input = Cropped();
  input.medium = models::Medium::kVolume;
  Expect(VisibleRegionOf(input, {.height = 24, .width = 20}), 0, 0, 20, 24);
}

}  // namespace
}  // namespace saccade::server
