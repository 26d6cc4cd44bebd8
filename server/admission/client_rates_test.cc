#include "server/admission/client_rates.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

// How many of `attempts` simultaneous requests are admitted.
int Through(ClientRates& rates, absl::string_view client, int attempts, absl::Time now) {
  int through = 0;
  for (int i = 0; i < attempts; ++i) through += rates.Take(client, now).ok() ? 1 : 0;
  return through;
}

TEST(ClientRatesTest, WithoutARateNothingIsRefusedOrRemembered) {
  ClientRates rates(ClientRateOptions{});
  EXPECT_EQ(Through(rates, "a", 1000, kStart), 1000);
  EXPECT_EQ(rates.clients(), 0);
}

TEST(ClientRatesTest, ABurstAndThenTheRate) {
  ClientRates rates({.requests_per_second = 10, .burst = 5});
  EXPECT_EQ(Through(rates, "a", 20, kStart), 5);
  EXPECT_EQ(Through(rates, "a", 20, kStart + absl::Milliseconds(99)), 0);
  EXPECT_EQ(Through(rates, "a", 20, kStart + absl::Milliseconds(100)), 1);
  EXPECT_EQ(Through(rates, "a", 20, kStart + absl::Milliseconds(400)), 3);
  EXPECT_EQ(Through(rates, "a", 20, kStart + absl::Hours(1)), 5) << "no more than the burst, after any pause";
}

TEST(ClientRatesTest, TheBurstIsOneSecondsUnlessItIsSet) {
  ClientRates rates({.requests_per_second = 10});
  EXPECT_EQ(Through(rates, "a", 100, kStart), 10);
  ClientRates slow({.requests_per_second = 0.25});
  EXPECT_EQ(Through(slow, "a", 100, kStart), 1);
  EXPECT_EQ(Through(slow, "a", 100, kStart + absl::Seconds(4)), 1);
}

TEST(ClientRatesTest, ClientsDoNotPayForEachOther) {
  ClientRates rates({.requests_per_second = 1, .burst = 2});
  EXPECT_EQ(Through(rates, "a", 10, kStart), 2);
  EXPECT_EQ(Through(rates, "b", 10, kStart), 2);
}

TEST(ClientRatesTest, ARefusalSaysWhoWhyAndWhen) {
  ClientRates rates({.requests_per_second = 2, .burst = 1});
  ASSERT_TRUE(rates.Take("ipv4:10.0.0.1", kStart).ok());
  const absl::Status refused = rates.Take("ipv4:10.0.0.1", kStart + absl::Milliseconds(200));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("client 'ipv4:10.0.0.1' sends more than 2 requests per second "
                        "(--client-requests-per-second; at most 1 at once, --client-burst); try again in "
                        "300ms"));
  EXPECT_EQ(RetryAfter(refused), absl::Milliseconds(300));
  EXPECT_TRUE(rates.Take("ipv4:10.0.0.1", kStart + absl::Milliseconds(500)).ok()) << "the hint is kept";
}

TEST(ClientRatesTest, TheLeastRecentlySeenIsForgotten) {
  ClientRates rates({.requests_per_second = 1, .burst = 1, .max_clients = 3});
  for (const char* client : {"a", "b", "c"}) ASSERT_TRUE(rates.Take(client, kStart).ok());
  EXPECT_FALSE(rates.Take("a", kStart).ok()) << "seen again, though refused";
  ASSERT_TRUE(rates.Take("d", kStart).ok());
  EXPECT_EQ(rates.clients(), 3);
  EXPECT_FALSE(rates.Take("a", kStart).ok());
  EXPECT_FALSE(rates.Take("c", kStart).ok());
  EXPECT_TRUE(rates.Take("b", kStart).ok()) << "forgotten";
}

TEST(ClientRatesTest, AHundredThousandClientsTakeBoundedRoom) {
  ClientRates rates({.requests_per_second = 1});
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(rates.Take(absl::StrCat("client ", i), kStart).ok());
  EXPECT_EQ(rates.clients(), 10'000);
}

}  // namespace
}  // namespace saccade::server
