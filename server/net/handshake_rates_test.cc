#include "server/net/handshake_rates.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

class HandshakeRatesTest : public ::testing::Test {
 protected:
  int Taken(const std::string& address) {
    int taken = 0;
    while (taken < 1000 && rates_.Take(address, now_)) ++taken;
    return taken;
  }

  HandshakeRates rates_{/*per_second=*/10, /*max_at_once=*/50};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(HandshakeRatesTest, AnAddressHasABurstAndARate) {
  EXPECT_EQ(Taken("a"), 50);
  EXPECT_EQ(Taken("b"), 50) << "others are not affected";
  now_ += absl::Seconds(1);
  EXPECT_EQ(Taken("a"), 10);
  now_ += absl::Seconds(3);
  EXPECT_EQ(Taken("a"), 30);
  now_ += absl::Hours(1);
  EXPECT_EQ(Taken("a"), 50);
}

TEST_F(HandshakeRatesTest, AddressesAreForgottenWhenTheyHaveTheirBurstAgain) {
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(rates_.Take(absl::StrCat("address-", i), now_));
    now_ += absl::Milliseconds(1);
  }
  EXPECT_LE(rates_.addresses(), 101u) << "those of a tenth of a second";
  EXPECT_EQ(Taken("busy"), 50);
  now_ += absl::Milliseconds(4950);
  EXPECT_TRUE(rates_.Take("other", now_));
  EXPECT_EQ(rates_.addresses(), 2u);
  now_ += absl::Milliseconds(100);
  EXPECT_TRUE(rates_.Take("other", now_));
  EXPECT_EQ(rates_.addresses(), 1u);
}

}  // namespace
}  // namespace saccade::server
