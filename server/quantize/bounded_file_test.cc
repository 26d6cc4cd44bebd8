#include "server/quantize/bounded_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/quantize/testing/label_folder.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

class BoundedFileTest : public LabelFolderTest {};

TEST_F(BoundedFileTest, AFileIsReadUpToTheBound) {
  const std::string path = Write("list", "12345");
  EXPECT_EQ(ReadBoundedFile(path, 5).value_or(""), "12345");
  EXPECT_THAT(std::string(ReadBoundedFile(path, 4).status().message()),
              HasSubstr("list: has 5 bytes; expected at most 4"));
  EXPECT_EQ(ReadBoundedFile(Write("empty", ""), 4).value_or("-"), "");
  EXPECT_THAT(std::string(ReadBoundedFile(Path(""), 4).status().message()),
              HasSubstr("is missing or no file"));
}

}  // namespace
}  // namespace saccade::server
