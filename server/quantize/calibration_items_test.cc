#include "server/quantize/calibration_items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_format.h"
#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kHeight = 4;

// A picture is recognised among the items by its width.
class CalibrationItemsTest : public ::testing::Test {
 protected:
  CalibrationItemsTest() {
    std::filesystem::create_directory(folder_);
    input_.height = input_.width = input_.short_side = 8;
  }
  ~CalibrationItemsTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  void WritePicture(const std::string& name, int width) const {
    Write(name, Encode(".png", SmoothPicture(width, kHeight)));
  }
  // Writes the left and the right picture of a pair.
  void WritePair(const std::string& name, int width) const {
    WritePicture(name + "-left.png", width);
    WritePicture(name + "-right.png", width);
  }

  // Returns the widths of the pictures that are read, of pairs the left ones'; empty if there is an error.
  std::vector<int64_t> Widths(size_t max_items = 64) {
    warnings_.str("");
    std::vector<int64_t> widths;
    const auto listed = ListItems(folder_, input_, warnings_);
    error_ = std::string(listed.status().message());
    if (!listed.ok()) return widths;
    const auto items = ReadCalibrationItems(folder_, *listed, input_, max_items, warnings_);
    error_ = std::string(items.status().message());
    if (!items.ok()) return widths;
    for (const Item& item : *items) widths.push_back(item.placement.sent.width);
    return widths;
  }

  const std::string folder_ = ::testing::TempDir() + "/calibration." + std::to_string(getpid());
  models::ImageInput input_;
  std::ostringstream warnings_;
  std::string error_;
};

// Whether a picture's annotation comes before or behind it.
TEST_F(CalibrationItemsTest, AnnotationsBesideThePicturesTakeNoPlaces) {
  std::vector<int64_t> all;
  for (int i = 0; i < 32; ++i) {
    WritePicture(absl::StrFormat("%03d.png", i), 10 + i);
    all.push_back(10 + i);
  }
  for (const char* extension : {"json", "txt"}) {
    for (int i = 0; i < 32; ++i) Write(absl::StrFormat("%03d.%s", i, extension), "{}");
    EXPECT_THAT(Widths(32), ElementsAreArray(all)) << extension << ": " << error_;
    for (int i = 0; i < 32; ++i) std::filesystem::remove(folder_ + absl::StrFormat("/%03d.%s", i, extension));
  }
}

TEST_F(CalibrationItemsTest, ThoseThatAreLeftOutAreCountedAndTheFirstIsNamed) {
  for (int i = 0; i < 10; ++i) WritePicture(absl::StrFormat("p%d.png", i), 10 + i);
  for (const char* name : {"z.txt", "a.txt", "p4.txt"}) Write(name, "text");
  EXPECT_THAT(Widths(), SizeIs(10)) << error_;
  EXPECT_THAT(warnings_.str(),
              AllOf(HasSubstr("left out: files that cannot be used: 3; "), HasSubstr("/a.txt")));
}

TEST_F(CalibrationItemsTest, TheChosenAreSpreadOverTheFolder) {
  for (int i = 0; i < 80; ++i) {
    if (i % 5 == 2) Write(absl::StrFormat("%03d.png", i), "broken");
    if (i % 5 != 2) WritePicture(absl::StrFormat("%03d.png", i), 10 + i);
  }
  const std::vector<int64_t> widths = Widths(16);
  ASSERT_THAT(widths, SizeIs(16)) << error_;
  // A few in each quarter.
  std::vector<int> quarters(4);
  for (const int64_t width : widths) ++quarters[(width - 10) / 20];
  EXPECT_THAT(quarters, Each(Gt(1)));
  EXPECT_TRUE(std::is_sorted(widths.begin(), widths.end()));
}

TEST_F(CalibrationItemsTest, AFolderWithoutPicturesIsNotReadToItsEnd) {
  for (int i = 0; i < 200; ++i) Write(absl::StrFormat("%03d.txt", i), "text");
  EXPECT_THAT(Widths(8), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("has 0 files that can be used, of 128 that were tried; expected at least 8"));
}

TEST_F(CalibrationItemsTest, AStrayFileDoesNotShiftThePairs) {
  input_.views = 2;
  Write("README.txt", "What the pairs show.");
  for (int i = 0; i < 8; ++i) WritePair(absl::StrFormat("s%d", i), 10 + i);
  // A shifted pair has two sizes, and would be left out.
  EXPECT_THAT(Widths(), ElementsAre(10, 11, 12, 13, 14, 15, 16, 17)) << error_;
  EXPECT_THAT(warnings_.str(),
              AllOf(HasSubstr("left out: files that are no pictures: 1; "), HasSubstr("README.txt")));
}

TEST_F(CalibrationItemsTest, AnOddNumberOfPicturesOfPairsIsRefused) {
  input_.views = 2;
  WritePicture("overview.png", 9);
  for (int i = 0; i < 8; ++i) WritePair(absl::StrFormat("s%d", i), 10);
  EXPECT_THAT(Widths(), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("an odd number of pictures, 17"));
}

}  // namespace
}  // namespace saccade::server
