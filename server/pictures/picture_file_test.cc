#include "server/pictures/picture_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

TEST(PictureFileTest, ReadsEveryFormat) {
  const cv::Mat picture = SmoothPicture(33, 20);
  for (const auto& [extension, max_difference] :
       {std::pair{".png", 0.0}, {".bmp", 0.0}, {".tiff", 0.0}, {".jpg", 12.0}, {".webp", 20.0}}) {
    const auto read = ReadPictureFile(Encode(extension, picture), {});
    ASSERT_TRUE(read.ok()) << extension << ": " << read.status();
    ASSERT_EQ(read->size(), picture.size());
    EXPECT_LE(cv::norm(*read, picture, cv::NORM_INF), max_difference) << extension;
  }
}

TEST(PictureFileTest, TurnsUprightAndKeepsToTheLimits) {
  const std::string jpeg = Encode(".jpg", SmoothPicture(33, 20));
  const std::string turned = WithSegment(jpeg, '\xE1', ExifOrientation('\6'));
  const auto read = ReadPictureFile(turned, {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size(), cv::Size(20, 33));
  EXPECT_THAT(std::string(ReadPictureFile(jpeg, {.max_pixels = 659}).status().message()),
              HasSubstr("at most 659 pixels"));
  EXPECT_THAT(std::string(ReadPictureFile("", {}).status().message()), HasSubstr("is empty"));
  EXPECT_FALSE(ReadPictureFile(jpeg.substr(0, 100), {}).ok());
}

}  // namespace
}  // namespace saccade::server
