#include "client/cli/tune/traffic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::client {
namespace {

using server::simulation::ToMilliseconds;
using testing::HasSubstr;

const std::vector<std::string> kBuckets = {"64x64", "800x1344"};

std::string ErrorOf(const std::string& text) {
  const auto read = ParseTraffic(text, kBuckets);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(read.status().message());
}

TEST(TrafficFile, IsRead) {
  const auto read = ParseTraffic("# seconds bucket\n0.5\n\n0.75 800x1344\r\n  1.5,64x64\n", kBuckets);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 3U);
  EXPECT_DOUBLE_EQ(ToMilliseconds((*read)[0].at), 500);
  EXPECT_EQ((*read)[0].bucket, 0);
  EXPECT_DOUBLE_EQ(ToMilliseconds((*read)[1].at), 750);
  EXPECT_EQ((*read)[1].bucket, 1);
  EXPECT_EQ((*read)[2].bucket, 0);
  EXPECT_DOUBLE_EQ(RateOf(*read), 2);
}

TEST(TrafficFile, AWrongLineIsNamed) {
  EXPECT_THAT(ErrorOf("0\n1\nsoon\n"), HasSubstr("line 3 is 'soon'; expected SECONDS [BUCKET]"));
  EXPECT_THAT(ErrorOf("# x\n-1\n"), HasSubstr("line 2 is '-1'"));
  for (const char* wrong : {"nan", "inf", "1e300", "1 64x64 3", "0x"})
    EXPECT_THAT(ErrorOf(wrong), HasSubstr("line 1"));
  EXPECT_THAT(ErrorOf("0\n2\n1.5\n"),
              HasSubstr("line 3 is '1.5'; expected times in order: the one before is 2"));
  EXPECT_THAT(
      ErrorOf("0\n1 32x32\n"),
      HasSubstr("line 2 is '1 32x32'; expected a bucket that the daemon has measured: 64x64, 800x1344"));
  EXPECT_LT(ErrorOf(std::string(100'000, 'x')).size(), 300U);
}

TEST(TrafficFile, NeedsTwoTimes) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("has 0 requests"));
  EXPECT_THAT(ErrorOf("1\n"), HasSubstr("has 1 requests; expected two or more at different times"));
  EXPECT_THAT(ErrorOf("1\n1\n"), HasSubstr("has 2 requests at the same time"));
}

}  // namespace
}  // namespace saccade::client
