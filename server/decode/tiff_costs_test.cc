// TIFFs that are made to take more memory or time than their size suggests, and files like them that people
// send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "server/decode/prepare.h"
#include "server/decode/testing/costs_fixtures.h"
#include "server/decode/testing/video_fixtures.h"
#include "server/decode/volume.h"
#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

struct Tag {
  int number;
  int type;
  uint64_t count;
  // The value, or where it is, counted from the end of the directories.
  uint64_t value;
  bool elsewhere = false;
};

enum TagType { kByte = 1, kShort = 3, kLong = 4 };

// Little-endian TIFF of pages with the same tags, in the order given, and `data` behind them.
std::string TiffOf(const std::vector<Tag>& tags, const std::string& data, int pages = 1) {
  const size_t directory = 2 + 12 * tags.size() + 4;
  const size_t end = 8 + pages * directory;
  std::string tiff = "II*\0"s + Little(8, 4);
  for (int page = 0; page < pages; ++page) {
    tiff += Little(tags.size(), 2);
    for (const Tag& tag : tags) {
      const uint64_t value = tag.elsewhere ? end + tag.value : tag.value;
      tiff += Little(tag.number, 2) + Little(tag.type, 2) + Little(tag.count, 4) + Little(value, 4);
    }
    tiff += Little(page + 1 == pages ? 0 : 8 + (page + 1) * directory, 4);
  }
  return tiff + data;
}

// A grey picture of one pixel, which is the first byte of the data.
std::vector<Tag> OnePixel(int compression = 1) {
  return {{256, kShort, 1, 1}, {257, kShort, 1, 1},
          {258, kShort, 1, 8}, {259, kShort, 1, uint64_t(compression)},
          {262, kShort, 1, 1}, {273, kLong, 1, 0, true},
          {277, kShort, 1, 1}, {278, kShort, 1, 1},
          {279, kLong, 1, 1}};
}

std::vector<Tag> And(std::vector<Tag> tags, const std::vector<Tag>& more) {
  tags.insert(tags.end(), more.begin(), more.end());
  return tags;
}

std::vector<Tag> Blobs(int tags, uint64_t size) {
  std::vector<Tag> blobs;
  for (int i = 0; i < tags; ++i) blobs.push_back({40'000 + i, kByte, size, 1, true});
  return blobs;
}

TEST(TiffCostsTest, TiffsWhoseTagsShareABlob) {
  const std::string blob(kMebibyte, 'x');
  const std::string many = TiffOf(And(OnePixel(), Blobs(4000, kMebibyte)), "p" + blob);
  EXPECT_LT(many.size(), 1'200'000u);
  const PeakMemory memory;
  EXPECT_THAT(Refusal(many), HasSubstr("page 0 has 4009 tags; at most 256 are accepted"));
  EXPECT_THAT(Refusal(TiffOf(And(OnePixel(), Blobs(200, kMebibyte)), "p" + blob)),
              HasSubstr("the tags of page 0 hold 209715200 bytes; at most 8388608 bytes"));
  EXPECT_THAT(Refusal(TiffOf(And(OnePixel(), Blobs(4, kMebibyte)), "p" + blob)),
              HasSubstr("tags must not share their data"));
  EXPECT_LT(memory.growth(), 16 * kMebibyte);
}

// As many bytes as are accepted, of a type that libtiff widens to eight times as many: SMinSampleValue.
TEST(TiffCostsTest, TiffsOfAsManyTagBytesAsMayBe) {
  const std::string blob(8 * kMebibyte - 100, 'x');
  for (const int tag : {34'675, 40'000, 340, 51'000}) {
    const std::string tiff = TiffOf(And(OnePixel(), {{tag, kByte, blob.size(), 1, true}}), "p" + blob);
    const PeakMemory memory;
    Decoded(tiff);
    EXPECT_LT(memory.growth(), 160 * kMebibyte) << tag;
  }
}

TEST(TiffCostsTest, TiffPagesThatShareTags) {
  const std::string blob(kMebibyte, 'x');
  const auto attack = TiffOf(And(OnePixel(), Blobs(4, kMebibyte / 4)), "p" + blob, 3000);
  const double start = CpuSeconds();
  const auto refused = ReadVolumeHeader(File(attack), kMebibyte);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("tags must not share their data"));
  EXPECT_LT(CpuSeconds() - start, 0.5);
  EXPECT_EQ(ReadVolumeHeader(File(TiffOf(OnePixel(), "p", 3000)), kMebibyte)->depth, 3000);
}

// libtiff sorts its list of tags for each tag that is new to it.
TEST(TiffCostsTest, TiffPagesOfEverNewTags) {
  std::string tiff = "II*\0"s + Little(8, 4);
  constexpr int kPages = 200;
  for (int page = 0; page < kPages; ++page) {
    std::vector<Tag> tags = OnePixel();
    for (int i = 0; i < 240; ++i) tags.push_back({5000 + 240 * page + i, kLong, 1, 0});
    tiff += Little(tags.size(), 2);
    for (const Tag& tag : tags)
      tiff += Little(tag.number, 2) + Little(tag.type, 2) + Little(tag.count, 4) + Little(tag.value, 4);
    tiff += Little(page + 1 == kPages ? 0 : tiff.size() + 4, 4);
  }
  const double start = CpuSeconds();
  EXPECT_THAT(std::string(ReadVolumeHeader(File(tiff), kMebibyte).status().message()),
              HasSubstr("different tags; at most 512 are accepted"));
  EXPECT_LT(CpuSeconds() - start, 0.5);
}

TEST(TiffCostsTest, TiffPagesThatOverlap) {
  std::string loop = TiffOf(OnePixel(), "p");
  loop.replace(8 + 2 + 12 * OnePixel().size(), 4, Little(8, 4));
  const auto refused = ReadVolumeHeader(File(loop), kMebibyte);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("its pages overlap"));
}

TEST(TiffCostsTest, TiffsOfHugeTilesAndUnknownCompressions) {
  std::vector<Tag> tiled = {{256, kShort, 1, 1}, {257, kShort, 1, 1}, {258, kShort, 1, 8},
                            {259, kShort, 1, 8}, {262, kShort, 1, 1}, {277, kShort, 1, 1},
                            {322, kLong, 1, 0},  {323, kLong, 1, 0},  {324, kLong, 1, 0, true}};
  const auto with_tiles = [&](uint64_t side, const std::string& data, uint64_t shown = 1) {
    std::vector<Tag> tags = tiled;
    tags[0].value = tags[1].value = shown;
    tags[6].value = tags[7].value = side;
    tags.push_back({325, kLong, 1, data.size()});
    return TiffOf(tags, data);
  };
  const std::string tile = Deflated(std::string(8192 * 8192, 'x'));
  const PeakMemory memory;
  EXPECT_THAT(Refusal(with_tiles(8192, tile)),
              HasSubstr("tiles are 8192 x 8192 pixels large; at most 1048576"));
  EXPECT_LT(memory.growth(), 16 * kMebibyte);
  const cv::Mat small = Decoded(with_tiles(256, Deflated(std::string(256 * 256, 'x'))));
  EXPECT_TRUE(Same(small, cv::Mat(1, 1, CV_8UC3, cv::Scalar::all('x'))));
  constexpr int kLzma = 34'925;
  EXPECT_THAT(Refusal(TiffOf(OnePixel(kLzma), "p")),
              HasSubstr("its compression is number 34925; accepted are none"));
}

// A strip of one pixel, of `size` bytes: blocks without data come first.
std::string SlowStrip(size_t size) {
  std::string strip = "\x78\x01";
  while (strip.size() < size) strip += "\0\0\0\xFF\xFF"s;
  // The pixel, and the sum of the data.
  return strip + "\1\1\0\xFE\xFFp\0\x71\0\x71"s;
}

// Every strip or page is decoded from the same slow bytes.
TEST(TiffCostsTest, TiffsWhoseStripsShareData) {
  constexpr int kStrips = 20'000;
  // libtiff reads only the beginning of strips that are larger than a mebibyte without need.
  const std::string strip = SlowStrip(1'000'000);
  const auto tall = [&](uint64_t strips) {
    std::string offsets, counts;
    std::vector<Tag> tags = OnePixel(/*compression=*/8);
    const uint64_t tables = 4 * strips;
    const uint64_t end = 8 + 2 + 12 * tags.size() + 4;
    for (uint64_t i = 0; i < strips; ++i) {
      offsets += Little(end + 2 * tables, 4);
      counts += Little(strip.size(), 4);
    }
    tags[1] = {257, kLong, 1, strips};
    tags[5] = {273, kLong, strips, 0, true};
    tags[8] = {279, kLong, strips, tables, true};
    return TiffOf(tags, offsets + counts + strip);
  };
  double start = CpuSeconds();
  const std::string attack = tall(kStrips);
  EXPECT_LT(attack.size(), 1'300'000u);
  EXPECT_THAT(Refusal(attack), HasSubstr("they must not share their data"));
  EXPECT_LT(CpuSeconds() - start, 0.5);
  start = CpuSeconds();
  EXPECT_TRUE(Same(Decoded(tall(3)), cv::Mat(3, 1, CV_8UC3, cv::Scalar::all('p'))));
  const double seconds_of_a_strip = (CpuSeconds() - start) / 3;
  EXPECT_GT(kStrips * seconds_of_a_strip, 5) << "this test tests nothing";

  std::vector<Tag> page = OnePixel(/*compression=*/8);
  page[8].value = strip.size();
  EXPECT_EQ(ReadVolumeHeader(File(TiffOf(page, strip, 3)), kMebibyte)->depth, 3);
  start = CpuSeconds();
  const auto refused = ReadVolumeHeader(File(TiffOf(page, strip, 3000)), kMebibyte);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("they must not share their data"));
  EXPECT_LT(CpuSeconds() - start, 0.5);
}

// A picture of `rows` rows in one strip, which is this grey JPEG of 8184 columns.
std::string JpegStrip(const std::string& jpeg, int rows) {
  std::vector<Tag> tags = OnePixel(7);
  tags[0].value = 8184;
  tags[1].value = tags[7].value = static_cast<uint64_t>(rows);
  tags[8].value = jpeg.size();
  return TiffOf(tags, jpeg);
}

TEST(TiffCostsTest, TiffsWhoseJpegsAreTallerThanTheirStrip) {
  const std::string jpeg = ManyScans(8184, 3);
  const std::string attack = JpegStrip(jpeg, 32);
  EXPECT_LT(attack.size(), 200'000u);
  const PeakMemory memory;
  EXPECT_THAT(Refusal(attack), HasSubstr("the JPEG of its strip 0 has 8184 rows; at most 48 are expected"));
  EXPECT_THAT(std::string(ReadVolumeHeader(File(attack), kMebibyte).status().message()),
              HasSubstr("the JPEG of its strip 0 has 8184 rows"));
  EXPECT_LT(memory.growth(), 16 * kMebibyte);
  EXPECT_EQ(Decoded(JpegStrip(LargeJpeg(8184), 8184)).size(), cv::Size(8184, 8184));
  // The last strip may hold a whole block.
  EXPECT_EQ(Decoded(JpegStrip(LargeJpeg(8184), 8170)).size(), cv::Size(8184, 8170));
}

TEST(TiffCostsTest, TiffsOfManySamples) {
  std::vector<Tag> tags = OnePixel();
  tags[6].value = 9;
  tags.push_back({338, kShort, 1, 0});
  EXPECT_THAT(Refusal(TiffOf(tags, "pppppppppp")), HasSubstr("samples for each pixel; at most 8"));
}

// A colour profile, texts and a camera's private data, none of which share bytes.
TEST(TiffCostsTest, TiffsWithProfilesAndTextsAreRead) {
  constexpr uint64_t kSize = 500'000;
  const std::vector<Tag> metadata = {{270, 2, kSize, 1, true},
                                     {700, kByte, kSize, 1 + kSize, true},
                                     {34'377, kByte, kSize, 1 + 2 * kSize, true},
                                     {34'675, 7, kSize, 1 + 3 * kSize, true},
                                     {50'839, kByte, kSize, 1 + 4 * kSize, true}};
  const std::string tiff = TiffOf(And(OnePixel(), metadata), "p" + std::string(5 * kSize, 'm'));
  EXPECT_TRUE(Same(Decoded(tiff), cv::Mat(1, 1, CV_8UC3, cv::Scalar::all('p'))));
  EXPECT_EQ(ReadVolumeHeader(File(tiff), kMebibyte)->voxels(), 1);
}

}  // namespace
}  // namespace saccade::server
