#include "client/cli/input/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "client/cli/input/input_file.h"
#include "client/cli/testing/command_test.h"

namespace saccade::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExpandInputsTest : public CommandTest {};

TEST_F(ExpandInputsTest, ReplacesFoldersAndPatternsByTheirFiles) {
  const std::string two = File("f2.png", "2");
  const std::string ten = File("f10.PNG", "10");
  const std::string text = File("notes.txt", "no picture");
  const std::string folder = folder_;
  const auto files = ExpandInputs({"-", folder, text, folder + "/f?.png"}, kPictureFiles);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre("-", two, ten, text, two));
}

TEST_F(ExpandInputsTest, NamesInputsWithoutFiles) {
  File("notes.txt", "no picture");
  const std::string folder = folder_;
  EXPECT_THAT(std::string(ExpandInputs({folder}, kVolumeFiles).status().message()),
              HasSubstr(folder + " has no TIFF files in it"));
  EXPECT_THAT(std::string(ExpandInputs({folder + "/*.jpg"}, kPictureFiles).status().message()),
              HasSubstr("*.jpg matches no file"));
}

TEST_F(ExpandInputsTest, PrefersAFileThatIsNamedLikeAPattern) {
  const std::string odd = File("a[1].png", "odd");
  EXPECT_THAT(*ExpandInputs({odd}, kPictureFiles), ElementsAre(odd));
}

TEST_F(ExpandInputsTest, KeepsMissingFiles) {
  EXPECT_THAT(*ExpandInputs({"missing.png"}, kPictureFiles), ElementsAre("missing.png"));
}

TEST(ComesBefore, ComparesNumbersByTheirValue) {
  EXPECT_TRUE(ComesBefore("f2.png", "f10.png"));
  EXPECT_FALSE(ComesBefore("f10.png", "f2.png"));
  EXPECT_TRUE(ComesBefore("f009.png", "f10.png"));
  EXPECT_TRUE(ComesBefore("a", "ab"));
  EXPECT_TRUE(ComesBefore("a1b2", "a1b10"));
  EXPECT_FALSE(ComesBefore("a", "a"));
  EXPECT_NE(ComesBefore("f01", "f1"), ComesBefore("f1", "f01"));
}

TEST(ReadInput, ReadsAPipeToItsEndButNotBeyondTheLimit) {
  std::istringstream fits(std::string(100000, 'x'));
  EXPECT_EQ(ReadInput("-", fits, 100000, "x")->size(), 100000u);
  std::istringstream large(std::string(100001, 'x'));
  EXPECT_THAT(std::string(ReadInput("-", large, 100000, "x").status().message()),
              HasSubstr("--max-message-bytes"));
}

TEST(ReadInput, SaysWhatIsWrongWithTheFile) {
  std::istringstream empty;
  EXPECT_THAT(std::string(ReadInput("-", empty, 10, "a picture").status().message()),
              HasSubstr("is empty; expected a picture"));
  EXPECT_THAT(std::string(ReadInput("/nonesuch", empty, 10, "x").status().message()),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(std::string(ReadInput("/", empty, 10, "x").status().message()), HasSubstr("is a directory"));
}

}  // namespace
}  // namespace saccade::client
