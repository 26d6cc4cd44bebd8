// Tests of Fit::kKeepRatio, which scales whole pictures and pads them to a bucket, against an independent
// computation.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/decode/prepare.h"
#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {
namespace {

RawPicture Raw(const cv::Mat& mat) {
  const std::string_view bytes(reinterpret_cast<const char*>(mat.data), mat.total() * mat.elemSize());
  return {.width = mat.cols, .height = mat.rows, .rgb = true, .data = {.owner = nullptr, .bytes = bytes}};
}

cv::Mat Noise(int width, int height) {
  cv::Mat noise(height, width, CV_8UC3);
  std::mt19937 random(5);
  for (int i = 0; i < width * height * 3; ++i) noise.data[i] = static_cast<uint8_t>(random());
  return noise;
}

models::ImageInput KeepRatio(int64_t short_side, int64_t long_side, bool antialias) {
  models::ImageInput input;
  input.fit = models::Fit::kKeepRatio;
  input.short_side = short_side;
  input.long_side = long_side;
  input.antialias = antialias;
  input.buckets.stride = 32;
  return input;
}

struct Written {
  DecodedPicture picture;
  models::Placement placement;
  std::vector<float> out;

  float at(int64_t c, int64_t y, int64_t x) const {
    return out[(c * placement.bucket.height + y) * placement.bucket.width + x];
  }
};

Written WriteAll(const Picture& picture, const models::ImageInput& input) {
  const auto header = ReadHeader(picture, {});
  EXPECT_TRUE(header.ok()) << header.status();
  auto decoded = DecodePicture(picture, *header, input);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  const models::Placement placement = models::PlacementOf(input, decoded->sent);
  std::vector<float> out(3 * placement.bucket.height * placement.bucket.width, std::nanf(""));
  const absl::Status written = WriteInput(*decoded, input, placement, absl::MakeSpan(out));
  EXPECT_TRUE(written.ok()) << written;
  return {*decoded, placement, out};
}

double Pixel(const cv::Mat& mat, int64_t y, int64_t x, int64_t c) {
  return mat.at<cv::Vec3b>(static_cast<int>(y), static_cast<int>(x))[static_cast<int>(c)];
}

// One output value of torch's interpolate(mode="bilinear", align_corners=False).
double Bilinear(const cv::Mat& mat, models::Size scaled, int64_t y, int64_t x, int64_t c) {
  const auto source = [](int64_t i, int64_t from, int64_t to) {
    const double ratio = static_cast<double>(from) / static_cast<double>(to);
    return std::max(0.0, (static_cast<double>(i) + 0.5) * ratio - 0.5);
  };
  const double sy = source(y, mat.rows, scaled.height);
  const double sx = source(x, mat.cols, scaled.width);
  const auto y0 = static_cast<int64_t>(sy);
  const auto x0 = static_cast<int64_t>(sx);
  const int64_t y1 = std::min<int64_t>(y0 + 1, mat.rows - 1);
  const int64_t x1 = std::min<int64_t>(x0 + 1, mat.cols - 1);
  const double fy = sy - static_cast<double>(y0);
  const double fx = sx - static_cast<double>(x0);
  const double top = (1 - fx) * Pixel(mat, y0, x0, c) + fx * Pixel(mat, y0, x1, c);
  const double bottom = (1 - fx) * Pixel(mat, y1, x0, c) + fx * Pixel(mat, y1, x1, c);
  return (1 - fy) * top + fy * bottom;
}

// One output value of the triangle filter over every pixel of the picture; for shrinking.
double Averaged(const cv::Mat& mat, models::Size scaled, int64_t y, int64_t x, int64_t c) {
  const auto weight = [](int64_t i, int64_t from, int64_t to, int64_t at) {
    const double ratio = static_cast<double>(from) / static_cast<double>(to);
    const double distance = static_cast<double>(at) + 0.5 - (static_cast<double>(i) + 0.5) * ratio;
    return std::max(0.0, 1 - std::abs(distance) / ratio);
  };
  double sum = 0;
  double weights = 0;
  for (int64_t sy = 0; sy < mat.rows; ++sy) {
    for (int64_t sx = 0; sx < mat.cols; ++sx) {
      const double w = weight(y, mat.rows, scaled.height, sy) * weight(x, mat.cols, scaled.width, sx);
      sum += w * Pixel(mat, sy, sx, c);
      weights += w;
    }
  }
  return sum / weights;
}

// Checks every value: `expected`, normalised, inside the picture, and zero in the padding.
template <typename Expected>
void ExpectValues(const Written& written, const models::ImageInput& input, const cv::Mat& mat,
                  Expected expected) {
  const models::Placement& placement = written.placement;
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < placement.bucket.height; ++y) {
      for (int64_t x = 0; x < placement.bucket.width; ++x) {
        if (y >= placement.scaled.height || x >= placement.scaled.width) {
          ASSERT_EQ(written.at(c, y, x), 0) << "padding at " << c << ", " << y << ", " << x;
          continue;
        }
        const double value = expected(mat, placement.scaled, y, x, c);
        const double normalised = (value / 255 - input.mean[c]) / input.std[c];
        ASSERT_NEAR(written.at(c, y, x), normalised, 1e-4) << c << ", " << y << ", " << x;
      }
    }
  }
}

TEST(KeepRatioTest, WithoutAntialiasIsBilinear) {
  const models::ImageInput input = KeepRatio(40, 70, /*antialias=*/false);
  // Shrunk, enlarged, limited by the longer side, and portrait.
  for (const cv::Size size : {cv::Size(97, 61), cv::Size(23, 31), cv::Size(150, 40), cv::Size(33, 120)}) {
    SCOPED_TRACE(size.width);
    const cv::Mat noise = Noise(size.width, size.height);
    const Written written = WriteAll(Raw(noise), input);
    EXPECT_NE(written.placement.scaled, written.placement.bucket);
    ExpectValues(written, input, noise, Bilinear);
  }
}

TEST(KeepRatioTest, AntialiasAveragesWhatBecomesOnePixel) {
  const models::ImageInput input = KeepRatio(20, 60, /*antialias=*/true);
  for (const cv::Size size : {cv::Size(97, 61), cv::Size(31, 83)}) {
    SCOPED_TRACE(size.width);
    const cv::Mat noise = Noise(size.width, size.height);
    ExpectValues(WriteAll(Raw(noise), input), input, noise, Averaged);
  }
}

TEST(KeepRatioTest, PictureOfTheRightSizeIsCopied) {
  const cv::Mat noise = Noise(70, 41);
  for (const bool antialias : {true, false}) {
    for (const int64_t short_side : {0, 41}) {
      models::ImageInput input = KeepRatio(short_side, 100, antialias);
      input.mean = {0, 0, 0};
      const Written written = WriteAll(Raw(noise), input);
      ASSERT_EQ(written.placement.scaled, (models::Size{41, 70}));
      ASSERT_EQ(written.placement.bucket, (models::Size{64, 96}));
      for (int64_t c = 0; c < 3; ++c) {
        const float gain = 1 / (255 * input.std[c]);
        for (int64_t y = 0; y < 41; ++y) {
          for (int64_t x = 0; x < 70; ++x) {
            ASSERT_EQ(written.at(c, y, x), gain * static_cast<float>(Pixel(noise, y, x, c)));
          }
        }
      }
    }
  }
}

TEST(KeepRatioTest, PictureThatFillsItsBucketHasNoPadding) {
  const models::ImageInput input = KeepRatio(0, 100, true);
  const cv::Mat noise = Noise(96, 64);
  const Written written = WriteAll(Raw(noise), input);
  EXPECT_EQ(written.placement.bucket, written.placement.scaled);
  ExpectValues(written, input, noise, Bilinear);
}

TEST(KeepRatioTest, TurnedPicturesGoToTheirUprightBucket) {
  models::ImageInput input = KeepRatio(24, 60, false);
  input.buckets.sizes = {{32, 64}, {64, 32}};
  const std::string jpeg = Encode(".jpg", SmoothPicture(90, 60));
  const std::string turned = WithSegment(jpeg, '\xE1', ExifOrientation(6));
  const Written flat = WriteAll(EncodedPicture{.data = {.owner = nullptr, .bytes = jpeg}}, input);
  EXPECT_EQ(flat.placement.bucket, (models::Size{32, 64}));
  const Written upright = WriteAll(EncodedPicture{.data = {.owner = nullptr, .bytes = turned}}, input);
  EXPECT_EQ(upright.picture.sent, (models::Size{90, 60}));
  EXPECT_EQ(upright.placement.bucket, (models::Size{64, 32}));
  // The picture was turned clockwise: its left column, from the bottom up, is now the top row.
  for (int64_t i = 0; i < 24; ++i) EXPECT_NEAR(upright.at(0, 0, i), flat.at(0, 23 - i, 0), 1e-5);
}

TEST(KeepRatioTest, LargeJpegsAreShrunkWhileTheyAreDecoded) {
  const std::string jpeg = Encode(".jpg", SmoothPicture(1203, 802));
  const cv::Mat whole = cv::imdecode(std::vector<char>(jpeg.begin(), jpeg.end()), cv::IMREAD_COLOR);
  RawPicture raw = Raw(whole);
  raw.rgb = false;
  const EncodedPicture encoded{.data = {.owner = nullptr, .bytes = jpeg}};
  // Returns the largest difference, in 8-bit steps.
  const auto difference = [&](const models::ImageInput& input) {
    const Written a = WriteAll(encoded, input);
    const Written b = WriteAll(raw, input);
    EXPECT_EQ(a.placement, b.placement);
    float max = 0;
    for (size_t i = 0; i < a.out.size(); ++i) max = std::max(max, std::abs(a.out[i] - b.out[i]));
    return 255 * max * input.std[0];
  };
  EXPECT_EQ(WriteAll(encoded, KeepRatio(90, 150, true)).picture.reduction, 4);
  EXPECT_LE(difference(KeepRatio(90, 150, true)), 4);
  // Without antialias half as large a picture is enough.
  models::ImageInput plain = KeepRatio(90, 150, false);
  EXPECT_EQ(WriteAll(encoded, plain).picture.reduction, 8);
  EXPECT_LE(difference(plain), 4);
  plain.reduced_jpeg = false;
  EXPECT_EQ(WriteAll(encoded, plain).picture.reduction, 1);
  EXPECT_EQ(difference(plain), 0);
  EXPECT_EQ(WriteAll(encoded, KeepRatio(0, 2000, true)).picture.reduction, 1) << "it is needed whole";
}

TEST(KeepRatioTest, ThinPicturesAreFine) {
  const models::ImageInput input = KeepRatio(800, 1333, false);
  for (const cv::Size size : {cv::Size(60'000, 1), cv::Size(1, 60'000)}) {
    const Written written = WriteAll(Raw(Noise(size.width, size.height)), input);
    EXPECT_LE(std::max(written.placement.scaled.height, written.placement.scaled.width), 1333);
    EXPECT_TRUE(
        std::all_of(written.out.begin(), written.out.end(), [](float v) { return std::isfinite(v); }));
  }
}

TEST(KeepRatioTest, PlacementOfAnotherPictureIsTheCallersFault) {
  const models::ImageInput input = KeepRatio(40, 70, false);
  const cv::Mat noise = Noise(30, 20);
  const auto decoded = DecodePicture(Raw(noise), *ReadHeader(Raw(noise), {}), input);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const models::Placement other = models::PlacementOf(input, {20, 31});
  std::vector<float> out(3 * other.bucket.height * other.bucket.width);
  EXPECT_EQ(WriteInput(*decoded, input, other, absl::MakeSpan(out)).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace saccade::server
