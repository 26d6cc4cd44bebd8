// Pictures that are too large to be decoded whole, and are read by regions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "server/decode/decoder.h"
#include "server/decode/prepare.h"
#include "server/pictures/testing/tiff_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

constexpr int kWidth = 203;
constexpr int kHeight = 141;
constexpr DecodeLimits kSmall = {.max_pixels = 10'000, .max_bytes = 1 << 24};

Picture File(const std::string& bytes) { return EncodedPicture{.data = {.owner = nullptr, .bytes = bytes}}; }

cv::Mat Pixels(const DecodedPicture& picture) {
  const SourcePixels& from = picture.pixels;
  return cv::Mat(static_cast<int>(from.height), static_cast<int>(from.width), CV_8UC3,
                 const_cast<uint8_t*>(from.data), from.row_bytes)
      .clone();
}

std::string Refusal(const std::string& bytes) {
  const auto header = ReadHeader(File(bytes), kSmall);
  EXPECT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument) << header.status();
  return std::string(header.status().message());
}

// Every region has exactly the pixels of the whole picture.
void ExpectRegionsOfWhole(const TiffLayout& layout) {
  const std::string bytes = Tiff(layout, kWidth, kHeight);
  const models::ImageInput input;
  const auto whole_header = ReadHeader(File(bytes), {});
  ASSERT_TRUE(whole_header.ok()) << whole_header.status();
  ASSERT_FALSE(whole_header->by_regions);
  const auto whole = DecodePicture(File(bytes), *whole_header, input);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const cv::Mat expected = Pixels(*whole);

  const ThreadDecoder decoder(kSmall);
  const Picture file = File(bytes);
  const auto header = decoder.ReadHeader(file, nullptr);
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_TRUE(header->by_regions);
  ASSERT_EQ(header->width, expected.cols) << "the size is that of the upright picture";
  ASSERT_EQ(header->height, expected.rows);
  const auto regions = decoder.OpenRegions(file, *header, nullptr);
  ASSERT_TRUE(regions.ok());
  const int right = expected.cols - 1;
  const int bottom = expected.rows - 1;
  for (const Region& region : std::vector<Region>{{0, 0, 1, 1},
                                                  {0, 0, 32, 32},
                                                  {31, 31, 2, 2},
                                                  {5, 40, 90, 70},
                                                  {right - 50, bottom - 60, 51, 61},
                                                  {right, bottom, 1, 1},
                                                  {0, bottom - 3, 100, 4}}) {
    const auto part = (*regions)->Read(region);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ(part->sent, (models::Size{region.height, region.width}));
    EXPECT_EQ(part->whole, (models::Size{expected.rows, expected.cols}));
    const cv::Mat wanted = expected(cv::Rect(region.x, region.y, region.width, region.height));
    EXPECT_EQ(cv::norm(Pixels(*part), wanted, cv::NORM_INF), 0)
        << region.width << " x " << region.height << " at " << region.x << ", " << region.y;
    const auto same = decoder.Decode(file, *header, input, region, nullptr);
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_EQ(cv::norm(Pixels(*same), wanted, cv::NORM_INF), 0);
  }
}

TEST(TiffRegionsTest, HaveThePixelsOfTheWholePicture) {
  ExpectRegionsOfWhole({});
  ExpectRegionsOfWhole({.compression = COMPRESSION_LZW, .samples = 1});
  ExpectRegionsOfWhole({.compression = COMPRESSION_NONE, .tile = 64});
  ExpectRegionsOfWhole({.compression = COMPRESSION_JPEG, .tile = 48});
  ExpectRegionsOfWhole({.planes = true});
}

TEST(TiffRegionsTest, AreThoseOfTheUprightPicture) {
  for (int orientation = ORIENTATION_TOPLEFT; orientation <= ORIENTATION_LEFTBOT; ++orientation) {
    SCOPED_TRACE(orientation);
    ExpectRegionsOfWhole({.orientation = orientation});
  }
}

TEST(TiffRegionsTest, TheWholeIsNotDecoded) {
  const std::string bytes = Tiff({}, kWidth, kHeight);
  const ThreadDecoder decoder(kSmall);
  const Picture file = File(bytes);
  const auto header = decoder.ReadHeader(file, nullptr);
  ASSERT_TRUE(header.ok()) << header.status();
  const absl::Status refused = decoder.Decode(file, *header, {}, std::nullopt, nullptr).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("203 x 141 pixels large, too large to be decoded at once; ask for a region or for tiles"));
  const auto wide = decoder.Decode(file, *header, {}, Region{0, 0, 203, 100}, nullptr);
  EXPECT_THAT(std::string(wide.status().message()),
              HasSubstr("the region of 203 x 100 pixels is too large; at most 10000 pixels"));
  const auto beyond = decoder.Decode(file, *header, {}, Region{150, 0, 54, 10}, nullptr);
  EXPECT_THAT(std::string(beyond.status().message()), HasSubstr("extends beyond the upright picture"));
}

TEST(TiffRegionsTest, StripsAreRefusedWithAdvice) {
  EXPECT_THAT(
      Refusal(Tiff({.tile = 0}, kWidth, kHeight)),
      HasSubstr("203 x 141 pixels large; at most 10000 pixels are decoded at once, and a TIFF in strips "
                "cannot be read by regions, so save it again in tiles of 256 x 256, for example"));
}

TEST(TiffRegionsTest, LargeTilesAreRefusedWithAdvice) {
  EXPECT_THAT(
      Refusal(Tiff({.tile = 1040}, 600, 500)),
      HasSubstr("its own tiles of 1040 x 1040 pixels are too large to be read by regions; at most 1048576"));
}

// Each is decoded as a whole for every region that touches it.
TEST(TiffRegionsTest, TilesThatAreFarLongerThanTheRegionAreRefused) {
  const std::string bytes = Tiff({.tile = 1024}, 4096, 4096);
  const ThreadDecoder decoder(kSmall);
  const Picture file = File(bytes);
  const auto header = decoder.ReadHeader(file, nullptr);
  ASSERT_TRUE(header.ok()) << header.status();
  const models::ImageInput input;
  const auto read = [&](const Region& region) {
    return decoder.Decode(file, *header, input, region, nullptr).status();
  };
  EXPECT_TRUE(read({1000, 1000, 60, 60}).ok()) << "four tiles";
  EXPECT_THAT(std::string(read({0, 1023, 4000, 2}).message()),
              HasSubstr("are too long for a region of 4000 x 2"));
}

TEST(TiffRegionsTest, ADamagedTileConcernsTheRegionsThatShowIt) {
  std::string bytes = Tiff({.compression = COMPRESSION_ADOBE_DEFLATE}, kWidth, kHeight);
  const ThreadDecoder decoder(kSmall);
  // The data of the first tile follow the header.
  std::fill_n(bytes.begin() + 8, 40, '\xFF');
  const Picture file = File(bytes);
  const auto header = decoder.ReadHeader(file, nullptr);
  ASSERT_TRUE(header.ok()) << header.status();
  const auto regions = decoder.OpenRegions(file, *header, nullptr);
  ASSERT_TRUE(regions.ok());
  const absl::Status damaged = (*regions)->Read({0, 0, 40, 40}).status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kInvalidArgument) << damaged;
  EXPECT_TRUE((*regions)->Read({100, 100, 40, 40}).ok());
}

TEST(TiffRegionsTest, StopWhenTheAnswerIsNotNeeded) {
  const std::string bytes = Tiff({}, kWidth, kHeight);
  const ThreadDecoder decoder(kSmall);
  const Picture file = File(bytes);
  const auto header = decoder.ReadHeader(file, nullptr);
  ASSERT_TRUE(header.ok()) << header.status();
  const auto regions =
      decoder.OpenRegions(file, *header, [] { return absl::CancelledError("the client is gone"); });
  ASSERT_TRUE(regions.ok());
  EXPECT_EQ((*regions)->Read({0, 0, 40, 40}).status().code(), absl::StatusCode::kCancelled);
}

// Sets the first number of an array of 16-bit numbers that a tag of a little-endian TIFF refers to.
void SetFirst(std::string& tiff, uint16_t tag, uint16_t value) {
  const auto number = [&tiff](size_t at, int bytes) {
    uint32_t read = 0;
    for (int i = bytes; i-- > 0;) read = read << 8 | static_cast<uint8_t>(tiff[at + i]);
    return read;
  };
  const size_t directory = number(4, 4);
  for (uint32_t i = 0; i < number(directory, 2); ++i) {
    const size_t entry = directory + 2 + 12 * size_t{i};
    if (number(entry, 2) != tag) continue;
    ASSERT_EQ(number(entry + 2, 2), uint32_t{TIFF_SHORT});
    for (int byte = 0; byte < 2; ++byte)
      tiff[number(entry + 8, 4) + byte] = static_cast<char>(value >> 8 * byte);
    return;
  }
  FAIL() << "no tag " << tag;
}

// A decoder might search megabytes for the pixels of each small tile.
TEST(TiffRegionsTest, TilesOfFarMoreBytesThanPixelsAreRefused) {
  std::string bytes = Tiff({}, kWidth, kHeight);
  ASSERT_GT(bytes.size(), 30'000u);
  SetFirst(bytes, TIFFTAG_TILEBYTECOUNTS, 20'000);
  const auto header = ReadHeader(File(bytes), kSmall);
  ASSERT_TRUE(header.ok()) << header.status();
  const absl::Status refused = DecodeRegion(bytes, *header, {0, 0, 40, 40}, kSmall).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("its tile 0 has 20000 bytes; at most 10240"));
  EXPECT_TRUE(DecodeRegion(bytes, *header, {32, 0, 40, 40}, kSmall).ok());
}

TEST(TiffRegionsTest, DecodingEndsBetweenTilesWhenItIsNoLongerWanted) {
  const std::string bytes = Tiff({}, kWidth, kHeight);
  const auto header = ReadHeader(File(bytes), kSmall);
  ASSERT_TRUE(header.ok()) << header.status();
  int asked = 0;
  const auto twice = [&asked] { return ++asked > 2 ? absl::CancelledError("gone") : absl::OkStatus(); };
  EXPECT_EQ(DecodeRegion(bytes, *header, {0, 0, 90, 90}, kSmall, twice).status(),
            absl::CancelledError("gone"));
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace saccade::server
