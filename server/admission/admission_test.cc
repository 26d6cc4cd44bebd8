#include "server/admission/admission.h"

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Admission> MakeAdmission(const AdmissionOptions& options) {
  auto admission = Admission::Create(options);
  EXPECT_TRUE(admission.ok()) << admission.status();
  return *std::move(admission);
}

constexpr AdmissionOptions kSmall{
    .max_inflight_requests = 3, .max_inflight_bytes = 100, .max_inflight_pixels = 50};

void ExpectInflight(const Admission& admission, int64_t requests, int64_t bytes, int64_t pixels) {
  const Inflight inflight = admission.inflight();
  EXPECT_EQ(inflight.requests, requests);
  EXPECT_EQ(inflight.bytes, bytes);
  EXPECT_EQ(inflight.pixels, pixels);
}

TEST(AdmissionTest, RefusesBoundsBelowOneByTheirFlag) {
  AdmissionOptions options = kSmall;
  options.max_inflight_pixels = 0;
  const auto admission = Admission::Create(options);
  EXPECT_EQ(admission.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(admission.status().message()), HasSubstr("--max-inflight-pixels is 0"));
}

TEST(AdmissionTest, BoundsRequests) {
  auto admission = MakeAdmission(kSmall);
  std::vector<Admission::Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(admission->Admit(1).value());
  const auto refused = admission->Admit(1);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("3 requests in flight (--max-inflight-requests)"));
  tickets.pop_back();
  EXPECT_TRUE(admission->Admit(1).ok());
}

TEST(AdmissionTest, BoundsBytes) {
  auto admission = MakeAdmission(kSmall);
  auto ticket = admission->Admit(60);
  ASSERT_TRUE(ticket.ok());
  EXPECT_TRUE(admission->Admit(40).ok()) << "the bound itself may be reached";
  const auto refused = admission->Admit(41);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--max-inflight-bytes"));
  ExpectInflight(*admission, 1, 60, 0);
}

TEST(AdmissionTest, WhatCanNeverFitIsNotWorthTryingAgain) {
  auto admission = MakeAdmission(kSmall);
  EXPECT_EQ(admission->Admit(101).status().code(), absl::StatusCode::kInvalidArgument);
  auto ticket = admission->Admit(1);
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(ticket->AddPixels(51).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(ticket->AddPixels(30).ok());
  EXPECT_EQ(ticket->AddPixels(21).code(), absl::StatusCode::kInvalidArgument) << "together they never fit";
  EXPECT_TRUE(ticket->AddPixels(20).ok());
  ExpectInflight(*admission, 1, 1, 50);
}

TEST(AdmissionTest, NegativeAmountsAreRefused) {
  auto admission = MakeAdmission(kSmall);
  EXPECT_EQ(admission->Admit(-1).status().code(), absl::StatusCode::kInvalidArgument);
  auto ticket = admission->Admit(0);
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(ticket->AddPixels(-1).code(), absl::StatusCode::kInvalidArgument);
  ExpectInflight(*admission, 1, 0, 0);
}

TEST(AdmissionTest, HugeAmountsDoNotOverflow) {
  auto admission = MakeAdmission(kSmall);
  auto ticket = admission->Admit(99);
  ASSERT_TRUE(ticket.ok() && ticket->AddPixels(49).ok());
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(admission->Admit(kHuge).ok());
  EXPECT_FALSE(ticket->AddPixels(kHuge).ok());
  ExpectInflight(*admission, 1, 99, 49);
}

TEST(AdmissionTest, BoundsPixelsAcrossTickets) {
  auto admission = MakeAdmission(kSmall);
  auto first = admission->Admit(1);
  auto second = admission->Admit(1);
  ASSERT_TRUE(first.ok() && second.ok() && first->AddPixels(40).ok());
  const absl::Status refused = second->AddPixels(11);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--max-inflight-pixels"));
  first->Release();
  EXPECT_TRUE(second->AddPixels(11).ok());
  ExpectInflight(*admission, 1, 1, 11);
}

TEST(AdmissionTest, TicketGivesBackOnceHoweverItIsMoved) {
  auto admission = MakeAdmission(kSmall);
  Admission::Ticket kept;
  EXPECT_EQ(kept.AddPixels(1).code(), absl::StatusCode::kFailedPrecondition);
  {
    auto ticket = admission->Admit(10);
    ASSERT_TRUE(ticket.ok() && ticket->AddPixels(5).ok());
    Admission::Ticket moved = *std::move(ticket);
    kept = std::move(moved);
  }
  ExpectInflight(*admission, 1, 10, 5);
  kept = admission->Admit(20).value();
  ExpectInflight(*admission, 1, 20, 0);
  kept.Release();
  kept.Release();
  ExpectInflight(*admission, 0, 0, 0);
}

TEST(AdmissionTest, DrainingRefusesTheNewAndKeepsTheOld) {
  auto admission = MakeAdmission(kSmall);
  auto ticket = admission->Admit(1);
  ASSERT_TRUE(ticket.ok());
  admission->StartDraining();
  admission->StartDraining();
  EXPECT_EQ(admission->Admit(1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(ticket->AddPixels(1).ok()) << "what was accepted is finished";
}

TEST(AdmissionTest, AwaitIdleWakesWithTheLastTicket) {
  FakeClock clock;
  auto admission = MakeAdmission(kSmall);
  auto first = admission->Admit(1);
  auto second = admission->Admit(1);
  ASSERT_TRUE(first.ok() && second.ok());
  bool idle = false;
  std::thread drain([&] { idle = admission->AwaitIdle(clock.Now() + absl::Seconds(25), &clock); });
  clock.AwaitWaiters(1);
  first->Release();
  clock.Advance(absl::Seconds(24));
  second->Release();
  drain.join();
  EXPECT_TRUE(idle);
}

TEST(AdmissionTest, AwaitIdleGivesUpAtItsDeadline) {
  FakeClock clock;
  auto admission = MakeAdmission(kSmall);
  EXPECT_TRUE(admission->AwaitIdle(clock.Now(), &clock)) << "idle from the start";
  auto ticket = admission->Admit(1);
  ASSERT_TRUE(ticket.ok());
  bool idle = true;
  std::thread drain([&] { idle = admission->AwaitIdle(clock.Now() + absl::Seconds(25), &clock); });
  clock.AwaitWaiters(1);
  clock.Advance(absl::Seconds(25));
  drain.join();
  EXPECT_FALSE(idle);
}

// Threads admit, add and give back at random: the bounds hold at every look, and all credit comes back.
TEST(AdmissionTest, CreditsReturnToZeroUnderManyThreads) {
  auto admission = MakeAdmission(kSmall);
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&admission, seed] {
      std::mt19937 random(seed);
      std::vector<Admission::Ticket> held;
      for (int step = 0; step < 5000; ++step) {
        if (auto ticket = admission->Admit(random() % 60); ticket.ok()) {
          ticket->AddPixels(random() % 30).IgnoreError();
          held.push_back(*std::move(ticket));
        }
        const Inflight now = admission->inflight();
        EXPECT_LE(now.requests, kSmall.max_inflight_requests);
        EXPECT_LE(now.bytes, kSmall.max_inflight_bytes);
        EXPECT_LE(now.pixels, kSmall.max_inflight_pixels);
        EXPECT_GE(now.requests, static_cast<int64_t>(held.size()));
        if (random() % 2 == 0) held.clear();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ExpectInflight(*admission, 0, 0, 0);
}

}  // namespace
}  // namespace saccade::server
