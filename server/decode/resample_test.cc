#include "server/decode/resample.h"

#include <array>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "server/decode/taps.h"

namespace saccade::server {
namespace {

struct Picture {
  std::vector<uint8_t> bytes;
  SourcePixels pixels;
};

// Hard for any filter and easy to reproduce in Python: (3 x^2 + 5 y^2 + 7 x y + 40 c) mod 256.
Picture MakePicture(int64_t width, int64_t height) {
  Picture picture;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        picture.bytes.push_back(static_cast<uint8_t>((3 * x * x + 5 * y * y + 7 * x * y + 40 * c) % 256));
      }
    }
  }
  picture.pixels = {picture.bytes.data(), static_cast<size_t>(3 * width), width, height};
  return picture;
}

ChannelMap ImageNet() {
  ChannelMap channels;
  constexpr std::array<float, 3> kMean = {0.485F, 0.456F, 0.406F};
  constexpr std::array<float, 3> kStd = {0.229F, 0.224F, 0.225F};
  for (int c = 0; c < 3; ++c) {
    channels.gain[c] = 1 / (255 * kStd[c]);
    channels.bias[c] = -kMean[c] / kStd[c];
  }
  return channels;
}

Planes Dense(std::vector<float>& out, int64_t width, int64_t height) {
  return {
      .data = out.data(), .row = static_cast<size_t>(width), .plane = static_cast<size_t>(width * height)};
}

float Mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0F) / static_cast<float>(values.size());
}

// The expected values are from torchvision 0.26, for the same picture as a float tensor:
//   n = (F.center_crop(F.resize(t, [short], antialias=True), [height, width]) / 255 - mean) / std
// and for a cubic with interpolation=BICUBIC and clamp(0, 255) after the resize,
// with values at (c, y, x) = (0, 0, 0), (1, h/2, w/2), (2, h-1, w-1), (0, 3, w-2), (1, h-2, 1), and the mean.
struct Case {
  int64_t width, height, resized_width, resized_height, crop_width, crop_height;
  std::array<float, 6> expected;
  bool cubic = false;
};

class ResampleTest : public ::testing::TestWithParam<Case> {};

TEST_P(ResampleTest, AgreesWithTorchvision) {
  const Case& c = GetParam();
  const Picture picture = MakePicture(c.width, c.height);
  const int64_t w = c.crop_width;
  const int64_t h = c.crop_height;
  std::vector<float> out(3 * w * h);
  Axis columns = CentreOf(c.width, c.resized_width, w);
  Axis rows = CentreOf(c.height, c.resized_height, h);
  columns.cubic = rows.cubic = c.cubic;
  Resample(picture.pixels, columns, rows, ImageNet(), Dense(out, w, h));
  const auto at = [&](int64_t channel, int64_t y, int64_t x) { return out[(channel * h + y) * w + x]; };
  EXPECT_NEAR(at(0, 0, 0), c.expected[0], 1e-4);
  EXPECT_NEAR(at(1, h / 2, w / 2), c.expected[1], 1e-4);
  EXPECT_NEAR(at(2, h - 1, w - 1), c.expected[2], 1e-4);
  EXPECT_NEAR(at(0, 3, w - 2), c.expected[3], 1e-4);
  EXPECT_NEAR(at(1, h - 2, 1), c.expected[4], 1e-4);
  EXPECT_NEAR(Mean(out), c.expected[5], 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    All, ResampleTest,
    ::testing::Values(Case{97,
                           61,
                           38,
                           24,
                           20,
                           16,
                           {-0.32136F, -0.20778F, 0.25319F, -0.04427F, 0.2391F, 0.23717F}},  // shrunk
                      Case{23,
                           31,
                           40,
                           53,
                           32,
                           32,
                           {-0.68327F, -0.29508F, 0.36758F, 0.66559F, 0.58253F, 0.22277F}},  // enlarged
                      Case{100,
                           7,
                           128,
                           9,
                           12,
                           12,
                           {-2.1179F, -0.23909F, -1.80444F, 0.55653F, -2.03571F, -0.35798F}},  // padded
                      Case{97,
                           61,
                           38,
                           24,
                           20,
                           16,
                           {-0.40793F, -0.27829F, 0.21519F, -0.12615F, 0.26688F, 0.23673F},
                           /*cubic=*/true},
                      Case{23,
                           31,
                           40,
                           53,
                           32,
                           32,
                           {-0.91947F, -0.43781F, 0.15556F, 1.09027F, 0.72649F, 0.22607F},
                           /*cubic=*/true}));

TEST(ResampleTest, SameSizeIsACopyInTheOrderAskedFor) {
  const Picture picture = MakePicture(5, 4);
  const ChannelMap bgr_to_rgb{.from = {2, 1, 0}, .gain = {1, 1, 1}, .bias = {0, 0, 0}};
  std::vector<float> out(3 * 5 * 4);
  Resample(picture.pixels, CentreOf(5, 5, 5), CentreOf(4, 4, 4), bgr_to_rgb, Dense(out, 5, 4));
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 5; ++x) {
      for (int c = 0; c < 3; ++c) {
        EXPECT_FLOAT_EQ(out[(c * 4 + y) * 5 + x], picture.bytes[3 * (y * 5 + x) + 2 - c]);
      }
    }
  }
}

TEST(ResampleTest, RowsMayBePadded) {
  const Picture whole = MakePicture(8, 3);
  const SourcePixels left{whole.pixels.data, whole.pixels.row_bytes, 4, 3};
  std::vector<float> out(3 * 4 * 3);
  Resample(left, CentreOf(4, 4, 4), CentreOf(3, 3, 3), {}, Dense(out, 4, 3));
  EXPECT_FLOAT_EQ(out[2 * 4 + 3], whole.bytes[3 * (2 * 8 + 3)]);
}

// The scaled picture has 25,600,000 columns, of which the output takes the middle 8. Storing them all would
// be visible in memory use.
TEST(ResampleTest, ThinPicturesCostNoMoreThanTheirOutput) {
  for (const bool wide : {true, false}) {
    const Picture picture = wide ? MakePicture(100'000, 1) : MakePicture(1, 100'000);
    const Axis along = CentreOf(100'000, 25'600'000, 8);
    const Axis across = CentreOf(1, 256, 8);
    std::vector<float> out(3 * 8 * 8, -1);
    Resample(picture.pixels, wide ? along : across, wide ? across : along, {}, Dense(out, 8, 8));
    for (float value : out) {
      EXPECT_GE(value, 0);
      EXPECT_LE(value, 255);
    }
  }
}

TEST(ResampleTest, TheWeightsTakeTheBytesThatAreStated) {
  for (const bool cubic : {false, true}) {
    for (const auto& [source, resized, length] : std::vector<std::array<int64_t, 3>>{{100'000, 16, 16},
                                                                                     {100'000, 16, 7},
                                                                                     {100'000, 16, 20},
                                                                                     {7, 128, 12},
                                                                                     {640, 640, 640},
                                                                                     {1, 4, 4}}) {
      Axis axis = CentreOf(source, resized, length);
      axis.cubic = cubic;
      const Taps taps = MakeTaps(axis, source);
      EXPECT_EQ(TapsBytes(axis, source), static_cast<int64_t>(taps.weights.capacity() * sizeof(float) +
                                                              taps.windows.capacity() * sizeof(Taps::Window)))
          << source << " to " << resized;
    }
  }
  // Windows overlap: each sample of the source has two weights, or four, except at the ends.
  Axis axis = CentreOf(100'000, 100, 100);
  EXPECT_NEAR(static_cast<double>(TapsBytes(axis, 100'000)), 2 * 4 * 100'000, 10'000);
  axis.cubic = true;
  EXPECT_NEAR(static_cast<double>(TapsBytes(axis, 100'000)), 4 * 4 * 100'000, 30'000);
  axis.antialias = axis.cubic = false;
  EXPECT_LT(TapsBytes(axis, 100'000), 10'000);
  EXPECT_EQ(ResampleBytes(100'000, 1, axis, CentreOf(1, 1, 1)),
            TapsBytes(axis, 100'000) + TapsBytes(CentreOf(1, 1, 1), 1) + 3 * 4 * 100);
}

TEST(ResampleTest, OnePixelFillsEverything) {
  const std::array<uint8_t, 3> pixel = {10, 20, 30};
  std::vector<float> out(3 * 4 * 4);
  Resample({pixel.data(), 3, 1, 1}, CentreOf(1, 4, 4), CentreOf(1, 4, 4), {}, Dense(out, 4, 4));
  for (int i = 0; i < 16; ++i) {
    EXPECT_FLOAT_EQ(out[i], 10);
    EXPECT_FLOAT_EQ(out[16 + i], 20);
    EXPECT_FLOAT_EQ(out[32 + i], 30);
  }
}

}  // namespace
}  // namespace saccade::server
