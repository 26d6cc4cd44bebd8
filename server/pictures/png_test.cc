#include "server/pictures/png.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <numeric>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <vector>

#include "server/pictures/coded_picture.h"
#include "server/pictures/testing/picture_fixtures.h"
#include "server/pictures/wanted_rows.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

cv::Mat ReadByOpenCv(const std::string& png) {
  return cv::imdecode(std::vector<uint8_t>(png.begin(), png.end()), cv::IMREAD_UNCHANGED);
}

bool AreSame(const cv::Mat& a, const cv::Mat& b) {
  return a.size() == b.size() && a.type() == b.type() && cv::norm(a, b, cv::NORM_INF) == 0;
}

TEST(PngTest, OpenCvReadsWhatIsWritten) {
  for (const cv::Size size : {cv::Size(1, 1), cv::Size(67, 45), cv::Size(300, 2)}) {
    const cv::Mat colours = SmoothPicture(size.width, size.height);
    const auto colour_png = PngOf(colours);
    ASSERT_TRUE(colour_png.ok()) << colour_png.status();
    EXPECT_TRUE(AreSame(ReadByOpenCv(*colour_png), colours));

    std::vector<uint8_t> bytes(static_cast<size_t>(size.area()));
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    const auto grey = GreyPng(bytes.data(), size.height, size.width);
    ASSERT_TRUE(grey.ok()) << grey.status();
    EXPECT_TRUE(AreSame(ReadByOpenCv(*grey), cv::Mat(size, CV_8UC1, bytes.data())));

    std::vector<uint16_t> words(bytes.size());
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint16_t>(i * 517);
    const auto deep = GreyPng(words.data(), size.height, size.width);
    ASSERT_TRUE(deep.ok()) << deep.status();
    EXPECT_TRUE(AreSame(ReadByOpenCv(*deep), cv::Mat(size, CV_16UC1, words.data())));

    for (const std::string& png : {*grey, *deep}) {
      const auto read = ReadGreyPng(png, size.width, size.height);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(AreSame(*read, ReadByOpenCv(png)));
    }
  }
}

TEST(PngTest, WritesRowsOfPartOfAPicture) {
  const cv::Mat part = SmoothPicture(40, 30)(cv::Rect(5, 6, 11, 7));
  EXPECT_TRUE(AreSame(ReadByOpenCv(*PngOf(part)), part));
  cv::Mat grey;
  cv::extractChannel(part, grey, 0);
  EXPECT_TRUE(AreSame(ReadByOpenCv(*PngOf(grey)), grey));
}

TEST(PngTest, WhatCannotBeWrittenIsAnError) {
  const uint8_t pixel = 0;
  EXPECT_EQ(GreyPng(&pixel, 0, 1).status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(GreyPng(&pixel, 0, 1).status().message()), HasSubstr("1 x 0 pixels could not be"));
  EXPECT_EQ(PngOf(cv::Mat(2, 2, CV_8UC4)).status().code(), absl::StatusCode::kInternal);
}

// Writes rows of `width` pixels, and ends the call at the question `last`. Returns how many were asked.
template <typename Pixel>
int64_t QuestionsOfPng(int64_t height, int64_t width, int64_t last, const absl::Status& end) {
  const std::vector<Pixel> pixels(static_cast<size_t>(height * width), Pixel{1});
  int64_t asked = 0;
  const StillWanted wanted = [&] { return ++asked == last ? end : absl::OkStatus(); };
  const auto png = GreyPng(pixels.data(), height, width, wanted);
  EXPECT_EQ(png.status(), asked < last ? absl::OkStatus() : end);
  if (png.ok()) {
    EXPECT_EQ(*png, *GreyPng(pixels.data(), height, width));
  }
  return asked;
}

TEST(PngTest, APngEndsWithItsCall) {
  const int64_t width = kValuesBetweenQuestions / 16;
  const absl::Status end = absl::DeadlineExceededError("late");
  // 16 rows follow each question; none follows the error.
  for (const int64_t last : {1, 2, 5}) {
    EXPECT_EQ(QuestionsOfPng<uint8_t>(80, width, last, end), last);
    EXPECT_EQ(QuestionsOfPng<uint16_t>(80, width, last, end), last);
  }
  EXPECT_EQ(QuestionsOfPng<uint8_t>(80, width, 6, end), 5);
  EXPECT_EQ(QuestionsOfPng<uint16_t>(80, width, 6, end), 5);
}

TEST(PngTest, OnlyGreyPngsOfTheSizeAreRead) {
  const uint8_t pixels[] = {1, 2, 3, 4, 5, 6};
  const std::string grey = *GreyPng(pixels, 2, 3);
  EXPECT_TRUE(ReadGreyPng(grey, 3, 2).ok());
  EXPECT_FALSE(ReadGreyPng(grey, 2, 3).ok());
  EXPECT_FALSE(ReadGreyPng(grey, -3, 2).ok());
  EXPECT_FALSE(ReadGreyPng("", 3, 2).ok());
  EXPECT_FALSE(ReadGreyPng("P5 3 2 255 123456", 3, 2).ok());
  EXPECT_FALSE(ReadGreyPng(grey.substr(0, grey.size() / 2), 3, 2).ok());
  EXPECT_FALSE(ReadGreyPng(*PngOf(SmoothPicture(3, 2)), 3, 2).ok());
}

// A PNG of one row of pixels, with a palette if there is one.
std::string OneRow(int depth, int colour, const std::string& palette, const std::string& row) {
  const auto chunk = [](const std::string& type, const std::string& data) {
    const std::string both = type + data;
    const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(both.data()), static_cast<uInt>(both.size()));
    return Big(data.size(), 4) + both + Big(sum, 4);
  };
  const std::string line = std::string(1, '\0') + row;
  std::string packed(compressBound(static_cast<uLong>(line.size())), '\0');
  uLongf size = packed.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                     reinterpret_cast<const Bytef*>(line.data()), static_cast<uLong>(line.size())),
            Z_OK);
  packed.resize(size);
  const auto width = row.size() * 8 / static_cast<size_t>(depth);
  const std::string header = Big(width, 4) + Big(1, 4) + Little(static_cast<uint64_t>(depth), 1) +
                             Little(static_cast<uint64_t>(colour), 1) + std::string(3, '\0');
  return "\x89PNG\r\n\x1A\n" + chunk("IHDR", header) + (palette.empty() ? "" : chunk("PLTE", palette)) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

std::vector<int> Numbers(const std::string& png, int64_t width) {
  const auto read = ReadPngNumbers(png, width, 1);
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.ok()) return {};
  std::vector<int> numbers;
  for (int x = 0; x < read->cols; ++x)
    numbers.push_back(read->elemSize() == 2 ? read->at<uint16_t>(0, x) : read->at<uint8_t>(0, x));
  return numbers;
}

// Data sets store the classes of pixels so: Pascal VOC's masks have a palette.
TEST(PngTest, NumbersAreReadAsTheyAreStored) {
  constexpr int kPalette = 3;
  const std::string colours = "\xF0\xF1\xF2\x10\x11\x12\x20\x21\x22";
  EXPECT_THAT(Numbers(OneRow(8, kPalette, colours, "\x02\x01\x02"), 3), ElementsAre(2, 1, 2));
  EXPECT_THAT(Numbers(OneRow(4, kPalette, colours, "\x21"), 2), ElementsAre(2, 1));
  EXPECT_THAT(Numbers(OneRow(1, 0, "", "\xA0"), 8), ElementsAre(1, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_THAT(Numbers(OneRow(16, 0, "", std::string("\x01\x02\x00\xFF", 4)), 2), ElementsAre(0x102, 0xFF));
  EXPECT_FALSE(ReadPngNumbers(*PngOf(SmoothPicture(3, 2)), 3, 2).ok());
  EXPECT_FALSE(ReadPngNumbers(OneRow(8, kPalette, colours, "\x02\x01\x02"), 4, 1).ok());
}

}  // namespace
}  // namespace saccade::server
