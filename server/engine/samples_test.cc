#include "server/engine/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kJpegStart[] = "\xFF\xD8\xFF\xE0 and what cannot be decoded";

class DivideIntoItemsTest : public ::testing::Test {
 protected:
  DivideIntoItemsTest() { std::filesystem::create_directory(folder_); }
  ~DivideIntoItemsTest() override { std::filesystem::remove_all(folder_); }

  // Writes a file; returns its path.
  std::string Write(const std::string& name, const std::string& content) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string Picture(const std::string& name) const { return Write(name, kJpegStart); }

  static models::ImageInput Views(int64_t views) {
    models::ImageInput input;
    input.views = views;
    return input;
  }

  const std::string folder_ = ::testing::TempDir() + "/samples." + std::to_string(getpid());
};

// With the stray file in a pair, the right picture of each pair would be computed with the next left one.
TEST_F(DivideIntoItemsTest, AFileThatIsNoPictureDoesNotShiftThePairs) {
  const std::vector<std::string> files = {Write("README.txt", "What these pictures show."),
                                          Picture("a-left.jpg"),
                                          Picture("a-right.jpg"),
                                          Write("b.txt", ""),
                                          Picture("c-left.jpg"),
                                          Picture("c-right.jpg")};
  const auto divided = DivideIntoItems(files, Views(2));
  ASSERT_TRUE(divided.ok()) << divided.status();
  EXPECT_THAT(divided->items, ElementsAre(ElementsAre(files[1], files[2]), ElementsAre(files[4], files[5])));
  EXPECT_THAT(divided->no_pictures, ElementsAre(files[0], files[3]));
}

TEST_F(DivideIntoItemsTest, AnOddNumberOfPicturesIsRefused) {
  const std::vector<std::string> files = {Write("README.txt", "text"), Picture("a-left.jpg"),
                                          Picture("a-right.jpg"), Picture("b-left.jpg")};
  const auto divided = DivideIntoItems(files, Views(2));
  EXPECT_EQ(divided.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(divided.status().message(),
              AllOf(HasSubstr("an odd number of pictures, 3"), HasSubstr("1 other files are no pictures"),
                    HasSubstr("README.txt")));
}

TEST_F(DivideIntoItemsTest, EveryFileIsAnItemWithoutPairs) {
  const std::vector<std::string> files = {Write("a.txt", "text"), Picture("b.jpg"), folder_ + "/none"};
  const auto divided = DivideIntoItems(files, Views(1));
  ASSERT_TRUE(divided.ok()) << divided.status();
  EXPECT_THAT(divided->items,
              ElementsAre(ElementsAre(files[0]), ElementsAre(files[1]), ElementsAre(files[2])));
  EXPECT_THAT(divided->no_pictures, IsEmpty());
}

}  // namespace
}  // namespace saccade::server
