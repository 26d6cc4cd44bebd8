#include "server/quantize/label_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "server/quantize/testing/label_folder.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class LabelLinesTest : public LabelFolderTest {
 protected:
  // Returns the files and labels of a list.
  std::vector<std::pair<std::string, std::string>> Read(absl::string_view name, const std::string& content) {
    const auto read = ReadLabelLines(Write(name, content));
    error_ = std::string(read.status().message());
    std::vector<std::pair<std::string, std::string>> found;
    if (!read.ok()) return found;
    for (const LabelLine& line : read->lines) found.emplace_back(line.file, line.label);
    return found;
  }

  std::string error_;
};

TEST_F(LabelLinesTest, ATextHasAFileAndTheRestIsTheLabel) {
  EXPECT_THAT(
      Read("val.txt", "\xEF\xBB\xBFILSVRC2012_val_00000001.JPEG 65\r\n\n./val/b.jpg\tgreat white, shark \n"),
      ElementsAre(Pair("ILSVRC2012_val_00000001.JPEG", "65"), Pair("b.jpg", "great white, shark")))
      << error_;
}

TEST_F(LabelLinesTest, ACsvHasCommasAndQuotes) {
  EXPECT_THAT(
      Read("val.CSV", "file,label\na b.jpg,65\n\"c,d.jpg\", \"a \"\"big\"\" shark, white\"\n"),
      ElementsAre(Pair("file", "label"), Pair("a b.jpg", "65"), Pair("c,d.jpg", "a \"big\" shark, white")))
      << error_;
}

TEST_F(LabelLinesTest, WhatIsWrongIsToldWithItsLine) {
  Read("val.txt", "a.jpg 1\nb.jpg\n");
  EXPECT_THAT(error_,
              AllOf(HasSubstr("val.txt, line 2: is 'b.jpg'; expected FILE LABEL"), HasSubstr(".csv")));
  for (const std::string wrong : {"a.jpg", "a.jpg,1,2", "a.jpg,", ",1", "\"a.jpg,1", "\"a\"b,1"}) {
    Read("val.csv", "b.jpg,1\n" + wrong);
    EXPECT_THAT(error_, HasSubstr("val.csv, line 2: is ")) << wrong;
    EXPECT_THAT(error_, HasSubstr("expected FILE,LABEL")) << wrong;
  }
  Read("val.txt", "\n\n");
  EXPECT_THAT(error_, HasSubstr("val.txt: has no labels"));
  EXPECT_THAT(std::string(ReadLabelLines(Path("none")).status().message()),
              HasSubstr("none: is missing or no file"));
}

}  // namespace
}  // namespace saccade::server
