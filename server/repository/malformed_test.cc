// testdata/malformed has configurations that must be rejected. Each begins with a comment that contains a
// part of the expected error.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/config_file.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SACCADE_MALFORMED_CONFIGS))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class MalformedTest : public testing::TestWithParam<std::string> {};

TEST_P(MalformedTest, IsRefusedInItsOwnWords) {
  std::ifstream file(absl::StrCat(SACCADE_MALFORMED_CONFIGS, "/", GetParam(), ".pbtxt"), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_THAT(text, StartsWith("# "));
  const std::string expected = text.substr(2, text.find('\n') - 2);
  const auto config = ParseConfig(text, "m/config.pbtxt", "m");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(config.status().message()), StartsWith("m/config.pbtxt"));
  EXPECT_THAT(std::string(config.status().message()), HasSubstr(expected));
}

INSTANTIATE_TEST_SUITE_P(All, MalformedTest, testing::ValuesIn(Names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace saccade::server
