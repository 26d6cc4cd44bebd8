#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <random>
#include <string>
#include <vector>

#include "server/pictures/coded_picture.h"
#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

struct BmpForm {
  int width = 7;
  int height = 5;
  int depth = 24;
  // 12, 40, 52 or 56 (with masks), 108 or 124 bytes.
  uint32_t header = 40;
  bool is_bottom_up = true;
  // Red, green and blue, and perhaps opacity.
  std::vector<uint32_t> masks = {};
  uint32_t used_colours = 0;
  size_t palette_entries = 0;
};

// BI_RGB, BI_BITFIELDS or BI_ALPHABITFIELDS.
uint32_t CompressionOf(const BmpForm& form) {
  if (form.masks.empty()) return 0;
  return form.masks.size() == 3 ? 3 : 6;
}

// Rows of random bytes behind the header that `form` describes.
std::string WriteBmp(const BmpForm& form) {
  const int height = form.is_bottom_up ? form.height : -form.height;
  std::string info = Little(form.header, 4);
  if (form.header == 12) {
    info += Little(form.width, 2) + Little(form.height, 2) + Little(1, 2) + Little(form.depth, 2);
  } else {
    info += Little(form.width, 4) + Little(static_cast<uint32_t>(height), 4) + Little(1, 2) +
            Little(form.depth, 2) + Little(CompressionOf(form), 4) + std::string(12, '\0') +
            Little(form.used_colours, 4) + std::string(4, '\0');
    for (const uint32_t mask : form.masks) info += Little(mask, 4);
    if (info.size() < form.header) info.resize(form.header, '\0');
  }
  std::mt19937 random(11);
  for (size_t i = 0; i < form.palette_entries; ++i) {
    info += Little(random() & 0xFFFFFF, form.header == 12 ? 3 : 4);
  }
  std::string bmp = "BM" + std::string(8, '\0') + Little(14 + info.size(), 4) + info;
  const int row_bytes = (form.width * form.depth + 31) / 32 * 4;
  for (int i = 0; i < row_bytes * form.height; ++i) bmp += static_cast<char>(random());
  return bmp;
}

cv::Mat Read(const std::string& bmp) {
  const auto picture = DecodeBmp(bmp, nullptr);
  EXPECT_TRUE(picture.ok()) << picture.status();
  return picture.ok() ? *picture : cv::Mat();
}

std::string Refusal(const std::string& bmp) {
  return std::string(ReadPictureHeader(bmp, {}).status().message());
}

// OpenCV rounds 5 bits down, so the bound is what that loses.
void ExpectAsOpenCvReadsIt(const BmpForm& form, double max_difference) {
  const std::string bmp = WriteBmp(form);
  const cv::Mat ours = Read(bmp);
  const cv::Mat theirs = cv::imdecode(std::vector<uint8_t>(bmp.begin(), bmp.end()), cv::IMREAD_COLOR);
  ASSERT_EQ(ours.size(), theirs.size());
  EXPECT_LE(cv::norm(ours, theirs, cv::NORM_INF), max_difference)
      << form.depth << " bits, header of " << form.header;
}

TEST(BmpPictureTest, IsReadAsOpenCvReadsIt) {
  for (const uint32_t header : {12U, 40U, 108U, 124U}) {
    for (const int depth : {1, 4, 8, 24, 32}) {
      if (header == 12 && depth == 32) continue;
      for (const bool is_bottom_up : {true, false}) {
        if (header == 12 && !is_bottom_up) continue;
        for (const int width : {1, 7, 8, 33}) {
          const size_t entries = depth <= 8 ? size_t{1} << depth : 0;
          ExpectAsOpenCvReadsIt({.width = width,
                                 .depth = depth,
                                 .header = header,
                                 .is_bottom_up = is_bottom_up,
                                 .palette_entries = entries},
                                0);
        }
      }
    }
  }
  const std::pair<int, std::vector<uint32_t>> masked[] = {
      {16, {}}, {16, {0xF800, 0x07E0, 0x001F}}, {32, {0xFF0000, 0xFF00, 0xFF}}};
  for (const uint32_t header : {40U, 52U, 108U, 124U}) {
    for (const auto& [depth, masks] : masked) {
      // OpenCV looks for these masks behind the header, also if they are in it.
      if (depth == 16 && !masks.empty() && header > 40) continue;
      for (const bool is_bottom_up : {true, false}) {
        ExpectAsOpenCvReadsIt(
            {.depth = depth, .header = header, .is_bottom_up = is_bottom_up, .masks = masks},
            depth == 16 ? 7 : 0);
      }
    }
  }
}

TEST(BmpPictureTest, ColoursOfFewBitsReachBothEnds) {
  std::string bmp = WriteBmp({.width = 2, .height = 1, .depth = 16});
  bmp.replace(bmp.size() - 4, 4, Little(0xFFFF0000, 4));
  const cv::Mat picture = Read(bmp);
  EXPECT_EQ(picture.at<cv::Vec3b>(0, 0), cv::Vec3b(0, 0, 0));
  EXPECT_EQ(picture.at<cv::Vec3b>(0, 1), cv::Vec3b(255, 255, 255));
}

TEST(BmpPictureTest, MasksSayWhereColoursAre) {
  // Ten bits of red, of green and of blue, red lowest, in a header that holds them and behind one that does
  // not.
  for (const uint32_t header : {40U, 124U}) {
    std::string bmp = WriteBmp(
        {.width = 1, .height = 1, .depth = 32, .header = header, .masks = {0x3FF, 0xFFC00, 0x3FF00000}});
    bmp.replace(bmp.size() - 4, 4, Little(0x3FF | 512 << 10 | 256 << 20, 4));
    EXPECT_EQ(Read(bmp).at<cv::Vec3b>(0, 0), cv::Vec3b(64, 128, 255)) << header;
  }
}

TEST(BmpPictureTest, AMaskOfOpacityIsNotUsed) {
  for (const uint32_t header : {40U, 56U, 124U}) {
    const BmpForm form = {.width = 1,
                          .height = 1,
                          .depth = 32,
                          .header = header,
                          .masks = {0xFF0000, 0xFF00, 0xFF, 0xFF000000}};
    std::string bmp = WriteBmp(form);
    bmp.replace(bmp.size() - 4, 4, Little(0x03FF8040, 4));
    EXPECT_EQ(Read(bmp).at<cv::Vec3b>(0, 0), cv::Vec3b(64, 128, 255)) << header;
  }
  const std::string bmp = WriteBmp({.depth = 16, .masks = {0x7C00, 0x3E0, 0x1F, 0x8000}});
  EXPECT_EQ(Refusal(bmp), "");
  EXPECT_THAT(Refusal(bmp.substr(0, 14 + 40 + 12)), HasSubstr("its header is longer than that"));
}

TEST(BmpPictureTest, PlacesOutsideThePaletteAreBlack) {
  std::string bmp = WriteBmp({.width = 2, .height = 1, .depth = 8, .used_colours = 2, .palette_entries = 2});
  bmp.replace(bmp.size() - 4, 4, Little(0x0901, 4));
  const cv::Mat picture = Read(bmp);
  EXPECT_NE(picture.at<cv::Vec3b>(0, 0), cv::Vec3b(0, 0, 0));
  EXPECT_EQ(picture.at<cv::Vec3b>(0, 1), cv::Vec3b(0, 0, 0));
}

TEST(BmpPictureTest, MasksThatAreNoneAreRefused) {
  const auto with = [](int depth, const std::vector<uint32_t>& masks) {
    return Refusal(WriteBmp({.depth = depth, .masks = masks}));
  };
  EXPECT_THAT(with(24, {0xFF0000, 0xFF00, 0xFF}), HasSubstr("only 16 or 32 bits a pixel can have"));
  EXPECT_THAT(with(32, {0xFF00FF, 0xFF00, 0}), HasSubstr("not side by side"));
  EXPECT_THAT(with(32, {0xFF, 0xFF, 0xFF00}), HasSubstr("belong to two colours"));
  EXPECT_THAT(with(32, {0, 0, 0}), HasSubstr("masks of colours are empty"));
  EXPECT_THAT(with(16, {0xFF0000, 0xFF00, 0xFF}), HasSubstr("more bits than a pixel"));
  EXPECT_EQ(with(32, {0xFF000000, 0xFF0000, 0}), "");
}

TEST(BmpPictureTest, EndsWithItsCall) {
  // A bit for a pixel, so that few rows are many pixels.
  const std::string bmp = WriteBmp({.width = 1 << 20, .height = 5, .depth = 1, .palette_entries = 2});
  int asked = 0;
  const auto ended = DecodeBmp(
      bmp, [&] { return ++asked == 3 ? absl::CancelledError("the client has left") : absl::OkStatus(); });
  EXPECT_EQ(ended.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 3);
}

// Decoded without an error or refused; the sanitizers check memory accesses.
TEST(BmpPictureTest, MutatedFilesNeverBreakTheReader) {
  std::mt19937 random(3);
  const std::array<BmpForm, 5> forms = {BmpForm{.depth = 1, .palette_entries = 2},
                                        {.depth = 8, .header = 12, .palette_entries = 256},
                                        {.depth = 16, .masks = {0xF800, 0x07E0, 0x001F}},
                                        {.depth = 32, .header = 124, .masks = {0xFF0000, 0xFF00, 0xFF}},
                                        {}};
  int decoded = 0;
  for (const BmpForm& form : forms) {
    const std::string whole = WriteBmp(form);
    for (int i = 0; i < 2000; ++i) {
      const std::string bmp = Mutate(whole, random);
      if (!ReadPictureHeader(bmp, {}).ok()) continue;
      if (bmp.starts_with("BM") && DecodeBmp(bmp, nullptr).ok()) ++decoded;
    }
  }
  EXPECT_GT(decoded, 1000);
}

}  // namespace
}  // namespace saccade::server
