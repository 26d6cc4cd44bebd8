// Admission as the ledger of bytes.
#include "server/core/byte_ledger.h"

#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/admission/admission.h"
#include "server/core/fake_clock.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

class ByteLedgerTest : public testing::Test {
 protected:
  // A client may hold 50 bytes.
  ByteLedgerTest() {
    admission_ = Admission::Create(
                     {.max_inflight_bytes = 100, .max_message_bytes = 20, .max_decoded_bytes = 50}, &clock_)
                     .value();
  }

  ByteCharge Charge(absl::string_view client, int64_t bytes) {
    return admission_->Charge(client, bytes).value();
  }
  absl::Status Refusal(absl::string_view client, int64_t bytes) {
    return admission_->Charge(client, bytes).status();
  }
  int64_t bytes() const { return admission_->inflight().bytes; }

  FakeClock clock_;
  std::unique_ptr<Admission> admission_;
};

TEST_F(ByteLedgerTest, AChargeCountsUntilItIsDestroyed) {
  {
    ByteCharge charge = Charge("a", 30);
    EXPECT_EQ(charge.bytes(), 30);
    EXPECT_EQ(bytes(), 30);
    ByteCharge moved = std::move(charge);
    EXPECT_EQ(bytes(), 30);
    charge = Charge("a", 5);
    EXPECT_EQ(bytes(), 35);
    moved = std::move(charge);
    EXPECT_EQ(bytes(), 5);
    moved.Release();
    moved.Release();
    EXPECT_EQ(bytes(), 0);
  }
  EXPECT_EQ(bytes(), 0);
  EXPECT_EQ(admission_->inflight().requests, 0);
}

TEST_F(ByteLedgerTest, ChargesAndRequestsShareTheBound) {
  const ByteCharge a = Charge("a", 50);
  const ByteCharge b = Charge("b", 30);
  auto ticket = admission_->Admit({.bytes = 20, .client = "c"});
  ASSERT_TRUE(ticket.ok());
  const absl::Status refused = Refusal("d", 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("the server is at its limit of 100 bytes in flight (--max-inflight-bytes): 100 are in "
                "use, the request needs 1; try again later"));
  EXPECT_EQ(ShedReasonOf(refused), ShedReason::kBytes);
  EXPECT_TRUE(RetryAfter(refused).has_value());
  EXPECT_EQ(ShedReasonOf(admission_->Admit({.bytes = 1, .client = "d"}).status()), ShedReason::kBytes);
  ticket->Release();
  EXPECT_TRUE(admission_->Charge("d", 20).ok());
}

TEST_F(ByteLedgerTest, OneClientHoldsAtMostHalf) {
  const ByteCharge charge = Charge("a", 30);
  const auto upload = admission_->Admit({.bytes = 15, .client = "a"});
  ASSERT_TRUE(upload.ok());
  const absl::Status refused = Refusal("a", 6);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("half of --max-inflight-bytes"));
  EXPECT_EQ(ShedReasonOf(refused), ShedReason::kClientBytes);
  EXPECT_EQ(ShedReasonOf(admission_->Admit({.bytes = 6, .client = "a"}).status()), ShedReason::kClientBytes);
  EXPECT_TRUE(admission_->Charge("a", 5).ok());
  EXPECT_TRUE(admission_->Charge("b", 50).ok()) << "others are not concerned";
  EXPECT_EQ(bytes(), 45);
}

TEST_F(ByteLedgerTest, UnreadAnswersCountToTheirClient) {
  auto ticket = admission_->Admit({.bytes = 10, .client = "a"});
  ASSERT_TRUE(ticket.ok());
  Admission::Ticket answer = ticket->ForAnswer(60);
  ticket->Release();
  EXPECT_EQ(bytes(), 60);
  EXPECT_EQ(Refusal("a", 1).code(), absl::StatusCode::kResourceExhausted) << "it has to read first";
  EXPECT_TRUE(admission_->Charge("b", 40).ok());
  answer.Release();
  EXPECT_TRUE(admission_->Charge("a", 50).ok());
}

TEST_F(ByteLedgerTest, WhatCanNeverFitIsNotWorthTryingAgain) {
  EXPECT_EQ(Refusal("a", 101).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal("a", 51).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal("a", std::numeric_limits<int64_t>::max()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal("a", -1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(admission_->Charge("a", 0).ok());
  EXPECT_EQ(bytes(), 0);
}

TEST_F(ByteLedgerTest, ChargedBytesAreNotChargedAgain) {
  const Inflight model_bounds = {.bytes = 60};
  ByteCharge charge = Charge("a", 45);
  const Applicant applicant = {
      .bytes = 40, .charged_bytes = 45, .client = "a", .model = "m", .model_bounds = model_bounds};
  auto ticket = admission_->Admit(applicant);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  EXPECT_EQ(bytes(), 45);
  EXPECT_EQ(ShedReasonOf(admission_->Admit(applicant).status()), ShedReason::kModelBound)
      << "the model's bound counts all of them";
  ticket->Release();
  EXPECT_EQ(bytes(), 45);
  charge.Release();
  EXPECT_EQ(bytes(), 0);
}

TEST_F(ByteLedgerTest, TheRestOfALargerInputIsCharged) {
  const ByteCharge charge = Charge("a", 10);
  {
    const auto ticket = admission_->Admit({.bytes = 50, .charged_bytes = 10, .client = "a"});
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_EQ(bytes(), 50);
  }
  EXPECT_EQ(bytes(), 10);
  EXPECT_EQ(admission_->Admit({.bytes = 51, .charged_bytes = 10, .client = "a"}).status().code(),
            absl::StatusCode::kInvalidArgument)
      << "the client's share has no room for both parts, ever";
}

TEST_F(ByteLedgerTest, ADrainWaitsForRequestsAlone) {
  const ByteCharge charge = Charge("a", 30);
  admission_->StartDraining();
  EXPECT_TRUE(admission_->AwaitIdle(absl::InfinitePast()));
  EXPECT_TRUE(admission_->Charge("probe", 1).ok()) << "health checks are answered to the end";
}

// Random charges, requests and answers: the sum is exact at every step, no client gets more than its half,
// and in the end nothing is held.
TEST_F(ByteLedgerTest, TheSumIsExactInAnyOrder) {
  constexpr int64_t kShare = 50;
  const std::vector<std::string> names = {"a", "b", "c"};
  struct Held {
    std::string client;
    int64_t bytes;
    ByteCharge charge;
    Admission::Ticket ticket;
  };
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<Held> held;
    std::map<std::string, int64_t> by_client;
    int64_t sum = 0;
    int refused = 0;
    for (int step = 0; step < 2000; ++step) {
      const std::string& client = names[random() % names.size()];
      const int64_t wanted = static_cast<int64_t>(random() % 40);
      Held one{client, wanted, {}, {}};
      bool granted = false;
      bool must_fit = sum + wanted <= 100 && by_client[client] + wanted <= kShare;
      switch (random() % 4) {
        case 0:
        case 1: {
          auto charge = admission_->Charge(client, wanted);
          granted = charge.ok();
          if (granted) one.charge = *std::move(charge);
          break;
        }
        case 2: {
          auto ticket = admission_->Admit({.bytes = wanted, .client = client});
          granted = ticket.ok();
          if (granted) one.ticket = *std::move(ticket);
          break;
        }
        default: {
          must_fit = false;
          --refused;
          if (held.empty()) break;
          std::swap(held[random() % held.size()], held.back());
          sum -= held.back().bytes;
          by_client[held.back().client] -= held.back().bytes;
          held.pop_back();
          break;
        }
      }
      EXPECT_EQ(granted, must_fit) << "seed " << seed << ", step " << step;
      refused += granted ? 0 : 1;
      if (granted) {
        sum += wanted;
        by_client[client] += wanted;
        held.push_back(std::move(one));
      }
      ASSERT_EQ(bytes(), sum) << "seed " << seed << ", step " << step;
      for (const auto& [name, amount] : by_client) EXPECT_LE(amount, kShare) << name;
    }
    EXPECT_GT(refused, 100) << "the bounds were reached";
    held.clear();
    ASSERT_EQ(bytes(), 0);
  }
}

}  // namespace
}  // namespace saccade::server
