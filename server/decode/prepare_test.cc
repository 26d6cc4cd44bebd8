#include "server/decode/prepare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

EncodedPicture Encoded(const std::string& bytes) { return {.data = {.owner = nullptr, .bytes = bytes}}; }

RawPicture Raw(const cv::Mat& mat, bool rgb) {
  const std::string_view bytes(reinterpret_cast<const char*>(mat.data), mat.total() * mat.elemSize());
  return {.width = mat.cols, .height = mat.rows, .rgb = rgb, .data = {.owner = nullptr, .bytes = bytes}};
}

// Input whose values range from 0 to 255, so that differences are in 8-bit steps.
models::ImageInput Plain(int64_t side, int64_t short_side) {
  models::ImageInput input;
  input.height = side;
  input.width = side;
  input.short_side = short_side;
  input.mean = {0, 0, 0};
  input.std = {1 / 255.0F, 1 / 255.0F, 1 / 255.0F};
  return input;
}

struct Prepared {
  absl::StatusOr<models::Size> size;
  std::vector<float> out;
};

absl::StatusOr<models::Size> PrepareInto(const Picture& picture, const models::ImageInput& input,
                                         const DecodeLimits& limits, absl::Span<float> out) {
  const auto header = ReadHeader(picture, limits);
  if (!header.ok()) return header.status();
  const auto decoded = DecodePicture(picture, *header, input);
  if (!decoded.ok()) return decoded.status();
  const absl::Status written = WriteInput(*decoded, input, models::PlacementOf(input, decoded->sent), out);
  if (!written.ok()) return written;
  return decoded->sent;
}

Prepared PrepareAll(const Picture& picture, const models::ImageInput& input,
                    const DecodeLimits& limits = {}) {
  std::vector<float> out(3 * input.height * input.width, std::nanf(""));
  absl::StatusOr<models::Size> size = PrepareInto(picture, input, limits, absl::MakeSpan(out));
  return {std::move(size), std::move(out)};
}

struct Difference {
  double mean = 0;
  double max = 0;
};

Difference Compare(const std::vector<float>& a, const std::vector<float>& b) {
  Difference difference;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    difference.mean += d / static_cast<double>(a.size());
    // Not std::max, which would drop a NaN.
    if (!(d <= difference.max)) difference.max = d;
  }
  return difference;
}

std::string Refusal(const Picture& picture, const DecodeLimits& limits = {}) {
  const auto size = PrepareAll(picture, Plain(8, 8), limits).size;
  EXPECT_EQ(size.status().code(), absl::StatusCode::kInvalidArgument) << size.status();
  return std::string(size.status().message());
}

TEST(PrepareTest, EncodedAndRawAgree) {
  const cv::Mat bgr = SmoothPicture(90, 60);
  const models::ImageInput input = Plain(24, 32);
  const Prepared raw = PrepareAll(Raw(bgr, /*rgb=*/false), input);
  ASSERT_TRUE(raw.size.ok()) << raw.size.status();
  const std::pair<const char*, double> max[] = {{".png", 0}, {".bmp", 0}, {".jpg", 3}, {".webp", 6}};
  for (const auto& [extension, tolerance] : max) {
    SCOPED_TRACE(extension);
    const Prepared encoded = PrepareAll(Encoded(Encode(extension, bgr)), input);
    ASSERT_TRUE(encoded.size.ok()) << encoded.size.status();
    EXPECT_EQ(encoded.size->width, 90);
    EXPECT_EQ(encoded.size->height, 60);
    EXPECT_LE(Compare(encoded.out, raw.out).max, tolerance);
  }
}

TEST(PrepareTest, NormalisesInTheModelsOrder) {
  const cv::Mat blue(20, 20, CV_8UC3, cv::Scalar(255, 51, 0));
  models::ImageInput input = Plain(4, 5);
  input.mean = {0.5F, 0.1F, 0.25F};
  input.std = {0.5F, 0.2F, 0.25F};
  const Prepared rgb = PrepareAll(Raw(blue, /*rgb=*/false), input);
  EXPECT_NEAR(rgb.out[0], -1, 1e-6);
  EXPECT_NEAR(rgb.out[16], 0.5, 1e-6);
  EXPECT_NEAR(rgb.out[32], 3, 1e-6);
  input.rgb = false;
  const Prepared bgr = PrepareAll(Encoded(Encode(".png", blue)), input);
  EXPECT_NEAR(bgr.out[0], 1, 1e-6);
  EXPECT_NEAR(bgr.out[32], -1, 1e-6);
  const Prepared swapped = PrepareAll(Raw(blue, /*rgb=*/true), input);
  EXPECT_NEAR(swapped.out[0], -1, 1e-6) << "the picture's red, 255, is the model's last channel";
  EXPECT_NEAR(swapped.out[32], 3, 1e-6);
}

TEST(PrepareTest, GreyAlphaAndDepthBecomeThreeChannels) {
  const models::ImageInput input = Plain(8, 8);
  const cv::Mat grey(16, 16, CV_8UC1, cv::Scalar(77));
  const cv::Mat with_alpha(16, 16, CV_8UC4, cv::Scalar(77, 77, 77, 3));
  const cv::Mat deep(16, 16, CV_16UC1, cv::Scalar(77 * 257));
  const cv::Mat deep_colour(16, 16, CV_16UC3, cv::Scalar::all(77 * 257));
  const std::string pictures[] = {
      Encode(".jpg", grey),  Encode(".png", grey),        Encode(".png", with_alpha),
      Encode(".png", deep),  Encode(".png", deep_colour), Encode(".bmp", grey),
      Encode(".tiff", grey), Encode(".tiff", deep),       Encode(".tiff", deep_colour)};
  for (const std::string& picture : pictures) {
    const Prepared prepared = PrepareAll(Encoded(picture), input);
    ASSERT_TRUE(prepared.size.ok()) << prepared.size.status();
    for (float value : prepared.out) ASSERT_NEAR(value, 77, 1);
  }
}

TEST(PrepareTest, TurnsThePictureUprightByItsExif) {
  const cv::Mat bgr = SmoothPicture(64, 40);
  const std::string jpeg = Encode(".jpg", bgr);
  models::ImageInput input = Plain(24, 24);
  // Orientation 6 means: rotate by 90 degrees clockwise.
  cv::Mat upright;
  cv::transpose(cv::imdecode(std::vector<char>(jpeg.begin(), jpeg.end()), cv::IMREAD_COLOR), upright);
  cv::flip(upright, upright, 1);
  const Prepared expected = PrepareAll(Raw(upright, /*rgb=*/false), input);
  const Prepared turned = PrepareAll(Encoded(WithSegment(jpeg, '\xE1', ExifOrientation(6))), input);
  ASSERT_TRUE(turned.size.ok()) << turned.size.status();
  EXPECT_EQ(turned.size->width, 40);
  EXPECT_EQ(turned.size->height, 64);
  EXPECT_EQ(Compare(turned.out, expected.out).max, 0);
}

// Sets the orientation of a little-endian TIFF written by OpenCV by overwriting its PlanarConfiguration
// entry, which states the default anyway.
std::string Oriented(std::string tiff, char orientation) {
  constexpr size_t kOrientation = 0x0112;
  constexpr size_t kPlanarConfiguration = 0x011C;
  const auto at16 = [&](size_t at) {
    return size_t{static_cast<uint8_t>(tiff[at])} | size_t{static_cast<uint8_t>(tiff[at + 1])} << 8;
  };
  const size_t directory = at16(4) | at16(6) << 16;
  for (size_t i = 0; i < at16(directory); ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (at16(entry) != kPlanarConfiguration) continue;
    tiff[entry] = static_cast<char>(kOrientation & 0xFF);
    tiff[entry + 8] = orientation;
    return tiff;
  }
  ADD_FAILURE() << "the TIFF does not say how its channels lie";
  return tiff;
}

TEST(PrepareTest, TiffsAreReadAndTurnedUpright) {
  const cv::Mat bgr = SmoothPicture(64, 40);
  const std::string tiff = Encode(".tiff", bgr);
  const models::ImageInput input = Plain(24, 24);
  for (const int orientation : {1, 2, 3, 4, 5, 6, 7, 8}) {
    SCOPED_TRACE(orientation);
    cv::Mat upright = bgr.clone();
    if (orientation >= 5) cv::transpose(bgr, upright);
    if (orientation == 2 || orientation == 6) cv::flip(upright, upright, 1);
    if (orientation == 3 || orientation == 7) cv::flip(upright, upright, -1);
    if (orientation == 4 || orientation == 8) cv::flip(upright, upright, 0);
    const Prepared expected = PrepareAll(Raw(upright, /*rgb=*/false), input);
    const Prepared turned =
        PrepareAll(Encoded(orientation == 1 ? tiff : Oriented(tiff, static_cast<char>(orientation))), input);
    ASSERT_TRUE(turned.size.ok()) << turned.size.status();
    EXPECT_EQ(turned.size->width, upright.cols);
    EXPECT_EQ(turned.size->height, upright.rows);
    EXPECT_EQ(Compare(turned.out, expected.out).max, 0);
  }
}

TEST(PrepareTest, CutTiffsAreDamagedOnesAndNeverMore) {
  const std::string tiff = Encode(".tiff", SmoothPicture(64, 40));
  const models::ImageInput input = Plain(24, 24);
  std::mt19937 random(5);
  for (int i = 0; i < 500; ++i) PrepareAll(Encoded(Mutate(tiff, random)), input).size.status().IgnoreError();
}

TEST(PrepareTest, ARegionIsWhatItWouldBeAlone) {
  const cv::Mat bgr = SmoothPicture(200, 120);
  const models::ImageInput input = Plain(24, 24);
  const Region region{.x = 31, .y = 17, .width = 90, .height = 70};
  const cv::Mat part = bgr(cv::Rect(31, 17, 90, 70)).clone();
  const Prepared expected = PrepareAll(Raw(part, /*rgb=*/false), input);
  const std::string png = Encode(".png", bgr);
  const Picture pictures[] = {Encoded(png), Raw(bgr, /*rgb=*/false)};
  for (const Picture& picture : pictures) {
    const auto header = ReadHeader(picture, {});
    ASSERT_TRUE(header.ok());
    const auto decoded = DecodePicture(picture, *header, input, region);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->sent, (models::Size{70, 90}));
    EXPECT_EQ(decoded->whole, (models::Size{120, 200}));
    std::vector<float> out(expected.out.size());
    ASSERT_TRUE(
        WriteInput(*decoded, input, models::PlacementOf(input, decoded->sent), absl::MakeSpan(out)).ok());
    EXPECT_EQ(Compare(out, expected.out).max, 0);
  }
  const Picture picture = Raw(bgr, /*rgb=*/false);
  for (const Region& beyond : {Region{111, 0, 90, 10}, Region{0, 111, 10, 10}, Region{0, 0, 201, 1},
                               Region{std::numeric_limits<int>::max(), 0, 1, 1}}) {
    const absl::Status refused = DecodePicture(picture, *ReadHeader(picture, {}), input, beyond).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("beyond the upright picture, which has 200 x 120"));
  }
}

TEST(PrepareTest, CropIsCentred) {
  // The left half is black, the right half white.
  cv::Mat halves(20, 80, CV_8UC3, cv::Scalar::all(0));
  halves.colRange(40, 80) = cv::Scalar::all(255);
  const Prepared prepared = PrepareAll(Raw(halves, true), Plain(20, 20));
  const float* const row = prepared.out.data();
  EXPECT_EQ(row[0], 0);
  EXPECT_FLOAT_EQ(row[19], 255);
  EXPECT_EQ(row[9], 0);
  EXPECT_FLOAT_EQ(row[10], 255);
}

TEST(PrepareTest, HalfAPixelBesideACropIsRoundedAsTheModelSays) {
  // Each column has its own value. A crop leaves one and a half of them on each side.
  cv::Mat columns(20, 23, CV_8UC3);
  for (int column = 0; column < columns.cols; ++column)
    columns.col(column).setTo(cv::Scalar::all(10.0 * column));
  models::ImageInput input = Plain(20, 20);
  EXPECT_NEAR(PrepareAll(Raw(columns, true), input).out[0], 20, 1e-3);
  input.crop_rounds_down = true;
  EXPECT_NEAR(PrepareAll(Raw(columns, true), input).out[0], 10, 1e-3);
}

TEST(PrepareTest, ACropMayFollowAnotherShape) {
  // Ten columns of pixels become five. Three of them are cut out, and all rows but the first and last.
  cv::Mat columns(5, 10, CV_8UC3);
  for (int column = 0; column < columns.cols; ++column) {
    const int pair = column / 2;
    columns.col(column).setTo(cv::Scalar::all(10.0 * pair));
  }
  columns.row(0).setTo(cv::Scalar::all(255));
  models::ImageInput input = Plain(3, 3);
  input.before_crop = {.height = 5, .width = 5};
  input.antialias = false;
  const Prepared prepared = PrepareAll(Raw(columns, true), input);
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column)
      EXPECT_NEAR(prepared.out[3 * row + column], 10 * (column + 1), 1e-3) << row << ", " << column;
  }
}

// JPEGs at least four times as large as needed are shrunk during decoding. The result is within four 8-bit
// steps, and half a step on average, even for noise on every pixel.
TEST(PrepareTest, ReducedDecodingStaysClose) {
  cv::Mat noisy = SmoothPicture(1203, 802);
  std::mt19937 random(3);
  for (int i = 0; i < noisy.rows * noisy.cols * 3; ++i) {
    noisy.data[i] = cv::saturate_cast<uint8_t>(noisy.data[i] + static_cast<int>(random() % 41) - 20);
  }
  const std::string jpeg = Encode(".jpg", noisy, {cv::IMWRITE_JPEG_QUALITY, 90});
  const cv::Mat decoded = cv::imdecode(std::vector<char>(jpeg.begin(), jpeg.end()), cv::IMREAD_COLOR);
  for (const int64_t side : {48, 96, 192, 400}) {
    SCOPED_TRACE(side);
    const Prepared whole = PrepareAll(Raw(decoded, /*rgb=*/false), Plain(side, side));
    const Prepared reduced = PrepareAll(Encoded(jpeg), Plain(side, side));
    ASSERT_TRUE(reduced.size.ok()) << reduced.size.status();
    EXPECT_EQ(reduced.size->width, 1203);
    EXPECT_EQ(reduced.size->height, 802);
    const Difference difference = Compare(whole.out, reduced.out);
    EXPECT_LE(difference.mean, 0.5);
    EXPECT_LE(difference.max, 4);
    if (side == 400) {
      EXPECT_EQ(difference.max, 0) << "too small a picture to be reduced";
    }
  }
}

TEST(PrepareTest, AJpegIsReducedOnlyIfTheModelAllowsIt) {
  const std::string jpeg = Encode(".jpg", SmoothPicture(1203, 802), {cv::IMWRITE_JPEG_QUALITY, 90});
  const cv::Mat decoded = cv::imdecode(std::vector<char>(jpeg.begin(), jpeg.end()), cv::IMREAD_COLOR);
  models::ImageInput input = Plain(48, 48);
  const Prepared whole = PrepareAll(Raw(decoded, /*rgb=*/false), input);
  EXPECT_NE(PrepareAll(Encoded(jpeg), input).out, whole.out);
  input.reduced_jpeg = false;
  EXPECT_EQ(PrepareAll(Encoded(jpeg), input).out, whole.out);
}

// An input as detectors have it.
models::ImageInput WithoutAntialias(int64_t short_side) {
  models::ImageInput input = Plain(802, 1203);
  input.fit = models::Fit::kKeepRatio;
  input.short_side = short_side;
  input.long_side = 4 * short_side;
  input.buckets = {.sizes = {}, .stride = 1};
  input.antialias = false;
  return input;
}

TEST(PrepareTest, WithoutAntialiasAJpegTwiceAsLargeAsNeededIsReduced) {
  const auto reduction = [](int width, int height, int64_t short_side) {
    const PictureHeader header{.format = PictureFormat::kJpeg, .width = width, .height = height};
    return ReductionOf(header, WithoutAntialias(short_side), std::nullopt);
  };
  EXPECT_EQ(reduction(4032, 3024, 800), 2);
  EXPECT_EQ(reduction(3024, 4032, 800), 2);
  EXPECT_EQ(reduction(1600, 1200, 600), 2);
  EXPECT_EQ(reduction(1600, 1200, 610), 1);
  EXPECT_EQ(reduction(1920, 1200, 300), 4);
  EXPECT_EQ(reduction(1600, 1200, 150), 8);
  // The longer side decides how large the picture is in the bucket.
  EXPECT_EQ(reduction(4000, 500, 250), 4);

  const PictureHeader large{.format = PictureFormat::kJpeg, .width = 4032, .height = 3024};
  EXPECT_EQ(ReductionOf(large, WithoutAntialias(800), Region{.x = 0, .y = 0, .width = 4032, .height = 3024}),
            1);
  models::ImageInput input = WithoutAntialias(800);
  input.reduced_jpeg = false;
  EXPECT_EQ(ReductionOf(large, input, std::nullopt), 1);
  PictureHeader png = large;
  png.format = PictureFormat::kPng;
  EXPECT_EQ(ReductionOf(png, WithoutAntialias(800), std::nullopt), 1);
}

// Against a full decode that averages all pixels, a reduced decode is about as good as a full one that passes
// over some, or better; of a picture without noise all three are nearly the same.
TEST(PrepareTest, ReducedDecodingWithoutAntialiasIsNotWorse) {
  const auto decoded_in_three_ways = [](const cv::Mat& picture, int64_t short_side) {
    const std::string jpeg = Encode(".jpg", picture, {cv::IMWRITE_JPEG_QUALITY, 95});
    const auto written = [&](bool reduced_jpeg, bool antialias) {
      models::ImageInput input = WithoutAntialias(short_side);
      input.reduced_jpeg = reduced_jpeg;
      input.antialias = antialias;
      const models::Size bucket = models::PlacementOf(input, {picture.rows, picture.cols}).bucket;
      std::vector<float> out(3 * bucket.height * bucket.width, std::nanf(""));
      const auto sent = PrepareInto(Encoded(jpeg), input, {}, absl::MakeSpan(out));
      EXPECT_TRUE(sent.ok()) << sent.status();
      EXPECT_EQ(*sent, (models::Size{picture.rows, picture.cols}))
          << "coordinates are of the picture as sent";
      return out;
    };
    const std::vector<float> averaged = written(false, true);
    const std::vector<float> reduced = written(true, false);
    const std::vector<float> whole = written(false, false);
    EXPECT_NE(reduced, whole);
    return std::pair(Compare(reduced, averaged), Compare(whole, averaged));
  };
  const cv::Mat smooth = SmoothPicture(1203, 802);
  cv::Mat noisy = smooth.clone();
  std::mt19937 random(3);
  for (int i = 0; i < noisy.rows * noisy.cols * 3; ++i) {
    noisy.data[i] = cv::saturate_cast<uint8_t>(noisy.data[i] + static_cast<int>(random() % 41) - 20);
  }
  for (const int64_t side : {100, 190, 400}) {
    SCOPED_TRACE(side);
    EXPECT_LE(decoded_in_three_ways(smooth, side).first.mean, 1);
    const auto [reduced, whole] = decoded_in_three_ways(noisy, side);
    EXPECT_LE(reduced.mean, whole.mean + 0.5);
  }
}

TEST(PrepareTest, BicubicIsSharperAndStaysWithinThePixels) {
  cv::Mat edge(64, 64, CV_8UC3, cv::Scalar(0, 0, 0));
  edge.colRange(32, 64).setTo(cv::Scalar(255, 255, 255));
  models::ImageInput input = Plain(128, 128);
  const auto steps = [&] {
    const Prepared prepared = PrepareAll(Raw(edge, /*rgb=*/true), input);
    float steepest = 0;
    for (int x = 1; x < 128; ++x) steepest = std::max(steepest, prepared.out[x] - prepared.out[x - 1]);
    EXPECT_EQ(*std::min_element(prepared.out.begin(), prepared.out.end()), 0);
    EXPECT_NEAR(*std::max_element(prepared.out.begin(), prepared.out.end()), 255, 1e-3);
    return steepest;
  };
  const float bilinear = steps();
  input.interpolation = models::Interpolation::kBicubic;
  EXPECT_GT(steps(), bilinear + 10);
}

TEST(PrepareTest, ReducedPicturesKeepTheirTrueSizeWhenTurned) {
  const std::string jpeg = WithSegment(Encode(".jpg", SmoothPicture(601, 403)), '\xE1', ExifOrientation(8));
  const Prepared prepared = PrepareAll(Encoded(jpeg), Plain(32, 32));
  ASSERT_TRUE(prepared.size.ok()) << prepared.size.status();
  EXPECT_EQ(prepared.size->width, 403);
  EXPECT_EQ(prepared.size->height, 601);
}

// A picture that is shrunk while it is decoded lies where the whole one lies, however it is turned.
TEST(PrepareTest, ReducedPicturesStayInPlaceWhenTurned) {
  cv::Mat squares(803, 1001, CV_8UC3);
  for (int y = 0; y < squares.rows; ++y) {
    for (int x = 0; x < squares.cols; ++x)
      squares.at<cv::Vec3b>(y, x) = cv::Vec3b::all((x / 60 + y / 60) % 2 == 0 ? 30 : 220);
  }
  const std::string jpeg = Encode(".jpg", squares);
  const auto difference = [&](char orientation) {
    const std::string turned = WithSegment(jpeg, '\xE1', ExifOrientation(orientation));
    models::ImageInput input = Plain(48, 48);
    const Prepared reduced = PrepareAll(Encoded(turned), input);
    input.reduced_jpeg = false;
    const Prepared whole = PrepareAll(Encoded(turned), input);
    EXPECT_TRUE(reduced.size.ok() && whole.size.ok());
    return Compare(reduced.out, whole.out).mean;
  };
  const double upright = difference(1);
  EXPECT_GT(upright, 0) << "it is not shrunk";
  for (const char orientation : {2, 3, 4, 5, 6, 7, 8})
    EXPECT_LE(difference(orientation), 1.5 * upright) << static_cast<int>(orientation);
}

TEST(PrepareTest, WebpsAreTurnedUprightByTheirExif) {
  using namespace std::string_literals;
  const std::string webp = Encode(".webp", SmoothPicture(64, 40), {cv::IMWRITE_WEBP_QUALITY, 101});
  const auto with_exif = [&](const std::string& name, bool says_so) {
    return PrepareAll(Encoded(ExtendedWebp(webp, {64, 40}, name + ExifOrientation(6).substr(6), says_so)),
                      Plain(24, 24));
  };
  const cv::Mat bgr = SmoothPicture(64, 40);
  cv::Mat upright;
  cv::transpose(bgr, upright);
  cv::flip(upright, upright, 1);
  const Prepared expected = PrepareAll(Raw(upright, /*rgb=*/false), Plain(24, 24));
  for (const std::string& name : {""s, "Exif\0\0"s}) {
    const Prepared turned = with_exif(name, true);
    ASSERT_TRUE(turned.size.ok()) << turned.size.status();
    EXPECT_EQ(turned.size->width, 40);
    EXPECT_EQ(turned.size->height, 64);
    EXPECT_EQ(Compare(turned.out, expected.out).max, 0);
  }
  EXPECT_EQ(with_exif("", false).size->width, 64) << "its header says that it has no EXIF data";
}

TEST(PrepareTest, ThinPicturesAreFine) {
  models::ImageInput input;
  for (const cv::Size size : {cv::Size(100'000, 1), cv::Size(1, 100'000)}) {
    const cv::Mat thin(size, CV_8UC3, cv::Scalar(1, 2, 3));
    const Prepared prepared = PrepareAll(Encoded(Encode(".png", thin)), input);
    ASSERT_TRUE(prepared.size.ok()) << prepared.size.status();
    EXPECT_EQ(prepared.size->width, size.width);
    EXPECT_TRUE(
        std::all_of(prepared.out.begin(), prepared.out.end(), [](float v) { return std::isfinite(v); }));
  }
}

TEST(PrepareTest, RefusesWhatIsNoPicture) {
  EXPECT_THAT(Refusal(Encoded("")), HasSubstr("empty"));
  EXPECT_THAT(Refusal(Encoded("GIF89a")), HasSubstr("GIF"));
  const std::string png = Encode(".png", SmoothPicture(64, 64));
  EXPECT_THAT(Refusal(Encoded(png.substr(0, png.size() / 2))), HasSubstr("truncated"));
  EXPECT_THAT(Refusal(Encoded(png), {.max_pixels = 64 * 64 - 1}), HasSubstr("64 x 64"));
  std::string damaged = png;
  damaged[png.size() / 2] = static_cast<char>(~damaged[png.size() / 2]);
  EXPECT_THAT(Refusal(Encoded(damaged)), HasSubstr("the PNG picture is damaged"));
}

TEST(PrepareTest, RefusesRawPicturesOfTheWrongSize) {
  const cv::Mat mat = SmoothPicture(10, 10);
  RawPicture raw = Raw(mat, true);
  raw.height = 11;
  EXPECT_THAT(Refusal(raw), HasSubstr("holds 300 bytes; 10 x 11 pixels of 3 bytes take 330"));
  raw.height = 0;
  EXPECT_THAT(Refusal(raw), HasSubstr("at least 1"));
  raw.width = raw.height = 1 << 30;
  EXPECT_THAT(Refusal(raw), HasSubstr("at most 67108864 pixels"));
}

TEST(PrepareTest, WrongRoomIsTheCallersFault) {
  std::vector<float> out(7);
  const cv::Mat mat = SmoothPicture(10, 10);
  EXPECT_EQ(PrepareInto(Raw(mat, true), Plain(8, 8), {}, absl::MakeSpan(out)).status().code(),
            absl::StatusCode::kInternal);
}

// Either returns an error, or a size and an output in which every value was written.
TEST(PrepareTest, MutatedPicturesAreAnsweredOneWayOrTheOther) {
  std::mt19937 random(11);
  const models::ImageInput input = Plain(16, 20);
  for (const char* extension : {".jpg", ".png", ".webp", ".bmp"}) {
    const std::string whole = Encode(extension, SmoothPicture(48, 33));
    int survived = 0;
    for (int i = 0; i < 300; ++i) {
      const std::string mutated = Mutate(whole, random);
      const Prepared prepared = PrepareAll(Encoded(mutated), input, {.max_pixels = 1 << 20});
      if (prepared.size.ok()) {
        ++survived;
        ASSERT_TRUE(
            std::none_of(prepared.out.begin(), prepared.out.end(), [](float v) { return std::isnan(v); }));
      } else {
        ASSERT_EQ(prepared.size.status().code(), absl::StatusCode::kInvalidArgument)
            << prepared.size.status();
      }
    }
    EXPECT_LT(survived, 300) << extension << ": nothing was broken enough to be refused";
  }
}

// The strips of a TIFF are decoded as long as they are wanted. OpenCV writes many small ones.
TEST(PrepareTest, ATiffIsDecodedWhileItIsWanted) {
  const cv::Mat pixels = SmoothPicture(1000, 1000);
  const std::string bytes = Encode(".tiff", pixels);
  const Picture picture = Encoded(bytes);
  const auto header = ReadHeader(picture, {});
  ASSERT_TRUE(header.ok()) << header.status();
  const absl::Status gone = absl::CancelledError("the client has gone");
  int asked = 0;
  const auto decode = [&](int wanted_times) {
    asked = 0;
    return DecodePicture(picture, *header, Plain(1000, 1000), std::nullopt,
                         [&] { return ++asked > wanted_times ? gone : absl::OkStatus(); });
  };
  const auto whole = decode(1000);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_GE(asked, 4);
  const cv::Mat shown(1000, 1000, CV_8UC3, const_cast<uint8_t*>(whole->pixels.data), whole->pixels.row_bytes);
  EXPECT_EQ(cv::norm(shown, pixels, cv::NORM_INF), 0);
  EXPECT_EQ(decode(2).status(), gone);
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace saccade::server
