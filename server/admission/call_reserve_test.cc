#include "server/admission/call_reserve.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOf(const absl::StatusOr<ByteCharge>& refused) {
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  return std::string(refused.status().message());
}

// Five calls, two of one client, of 100 bytes each.
class CallReserveTest : public ::testing::Test {
 protected:
  ~CallReserveTest() override {
    held_.clear();
    EXPECT_EQ(reserve_.calls(), 0);
    EXPECT_EQ(reserve_.bytes(), 0);
  }

  bool Take(absl::string_view client, int64_t bytes = 100) {
    auto charge = reserve_.Charge(client, bytes);
    if (charge.ok()) held_.push_back(*std::move(charge));
    return charge.ok();
  }

  CallReserve reserve_{{.max_calls = 5,
                        .max_calls_per_client = 2,
                        .bytes_per_call = 100,
                        .calls = "watches",
                        .flag = "--max-watches",
                        .flag_per_client = "--max-watches-per-client",
                        .advice = "end some"}};
  std::vector<ByteCharge> held_;
};

TEST_F(CallReserveTest, AClientHasItsNumberOfCalls) {
  EXPECT_TRUE(Take("a"));
  EXPECT_TRUE(Take("a"));
  const auto refused = reserve_.Charge("a", 1);
  EXPECT_THAT(TextOf(refused), AllOf(HasSubstr("the client has 2 open watches, the maximum is 2"),
                                     HasSubstr("(--max-watches-per-client)"), HasSubstr("; end some")));
  EXPECT_EQ(RetryAfter(refused.status()), absl::Seconds(1));
  EXPECT_EQ(StatedShedReason(refused.status()), ShedReason::kBytes);
  EXPECT_TRUE(Take("b")) << "others have places of their own";
  held_.erase(held_.begin());
  EXPECT_TRUE(Take("a")) << "a call that has ended leaves its place";
}

TEST_F(CallReserveTest, AllClientsTogetherHaveTheirNumberOfCalls) {
  for (const char* client : {"a", "a", "b", "b", "c"}) EXPECT_TRUE(Take(client));
  EXPECT_THAT(TextOf(reserve_.Charge("c", 1)),
              AllOf(HasSubstr("all clients together have 5 open watches, the maximum is 5"),
                    HasSubstr("(--max-watches)")));
  EXPECT_EQ(reserve_.calls(), 5);
  held_.pop_back();
  EXPECT_TRUE(Take("d"));
}

TEST_F(CallReserveTest, TheirBytesAreBoundedToo) {
  EXPECT_TRUE(Take("a", 150));
  EXPECT_THAT(TextOf(reserve_.Charge("a", 51)),
              HasSubstr("1 open watches, which hold 150 bytes, and this one needs 51; the maximum is 200"));
  EXPECT_TRUE(Take("a", 50));
  EXPECT_TRUE(Take("b", 200));
  EXPECT_THAT(TextOf(reserve_.Charge("c", 101)), HasSubstr("all clients together have 3 open watches"));
  EXPECT_EQ(reserve_.bytes(), 400);
}

TEST_F(CallReserveTest, WithoutAClientOnlyTheWholeCounts) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Take(""));
  EXPECT_FALSE(Take(""));
  EXPECT_FALSE(Take("a"));
}

TEST_F(CallReserveTest, NamesNoFlagWhereThereIsNone) {
  CallReserve fixed({.max_calls = 0,
                     .max_calls_per_client = 0,
                     .bytes_per_call = 1,
                     .calls = "checks",
                     .flag = "",
                     .flag_per_client = "",
                     .advice = "wait"});
  EXPECT_THAT(TextOf(fixed.Charge("a", 0)), AllOf(HasSubstr("the maximum is 0; wait"), Not(HasSubstr("("))));
}

TEST_F(CallReserveTest, NothingIsChargedForNegativeSizes) {
  EXPECT_EQ(reserve_.Charge("a", -1).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace saccade::server
