#include "client/cpp/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace saccade::client {
namespace {

using ::testing::HasSubstr;

TEST(ParseTarget, NamesAreResolvedToAllTheirAddresses) {
  const auto target = ParseTarget("saccade.prod:8001");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->uri, "dns:///saccade.prod:8001");
  EXPECT_FALSE(target->local);
}

TEST(ParseTarget, AddressesAreNotResolved) {
  EXPECT_EQ(ParseTarget("10.1.2.3:8001")->uri, "ipv4:10.1.2.3:8001");
  EXPECT_EQ(ParseTarget("[2001:db8::1]:80")->uri, "ipv6:[2001:db8::1]:80");
  EXPECT_EQ(ParseTarget("unix:/run/saccade.sock")->uri, "unix:/run/saccade.sock");
  EXPECT_EQ(ParseTarget("dns:///saccade:8001")->uri, "dns:///saccade:8001");
}

TEST(ParseTarget, RecognizesThisMachine) {
  EXPECT_TRUE(ParseTarget("127.0.0.1:8001")->local);
  EXPECT_TRUE(ParseTarget("localhost:8001")->local);
  EXPECT_TRUE(ParseTarget("[::1]:8001")->local);
  EXPECT_TRUE(ParseTarget("unix:/run/saccade.sock")->local);
  EXPECT_FALSE(ParseTarget("10.1.2.3:8001")->local);
}

TEST(ShuffledAddresses, ListsGetEveryOrderAndOthersStay) {
  std::set<std::string> orders;
  for (int i = 0; i < 1000; ++i) orders.insert(ShuffledAddresses("ipv4:10.0.0.1:1,10.0.0.2:2,10.0.0.3:3"));
  EXPECT_EQ(orders.size(), 6U);
  EXPECT_EQ(orders.count("ipv4:10.0.0.3:3,10.0.0.1:1,10.0.0.2:2"), 1U);
  for (const char* same : {"ipv6:[::1]:80", "dns:///a,b:80", "unix:/run/a,b"})
    EXPECT_EQ(ShuffledAddresses(same), same);
}

class Malformed : public ::testing::TestWithParam<const char*> {};

TEST_P(Malformed, IsRefusedWithWhatWasExpected) {
  const absl::Status status = ParseTarget(GetParam()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected HOST:PORT"));
}

INSTANTIATE_TEST_SUITE_P(All, Malformed,
                         ::testing::Values("", "saccade", ":8001", "saccade:", "saccade:http", "saccade:0",
                                           "saccade:65536", "saccade:-1", "http://saccade:8001", "::1:8001",
                                           "[saccade]:8001", "a b:8001", "host/path:8001"));

}  // namespace
}  // namespace saccade::client
