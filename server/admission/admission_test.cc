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
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Admission> MakeAdmission(const AdmissionOptions& options, Clock* clock = Clock::Real()) {
  auto admission = Admission::Create(options, clock);
  EXPECT_TRUE(admission.ok()) << admission.status();
  return *std::move(admission);
}

constexpr AdmissionOptions kSmall{
    .max_inflight_requests = 3, .max_inflight_bytes = 100, .max_decoded_bytes = 50};
constexpr Inflight kModelBounds{.requests = 2, .bytes = 60, .decoded_bytes = 20};

void ExpectInflight(const Admission& admission, int64_t requests, int64_t bytes, int64_t decoded_bytes) {
  const Inflight inflight = admission.inflight();
  EXPECT_EQ(inflight.requests, requests);
  EXPECT_EQ(inflight.bytes, bytes);
  EXPECT_EQ(inflight.decoded_bytes, decoded_bytes);
}

TEST(AdmissionTest, RefusesBoundsBelowOneByTheirFlag) {
  AdmissionOptions options = kSmall;
  options.max_decoded_bytes = 0;
  const auto admission = Admission::Create(options, Clock::Real());
  EXPECT_EQ(admission.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(admission.status().message()), HasSubstr("--max-decoded-bytes is 0"));
}

TEST(AdmissionTest, BoundsRequests) {
  auto admission = MakeAdmission(kSmall);
  std::vector<Admission::Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(admission->Admit({.bytes = 1}).value());
  const auto refused = admission->Admit({.bytes = 1});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("3 requests in flight (--max-inflight-requests)"));
  tickets.pop_back();
  EXPECT_TRUE(admission->Admit({.bytes = 1}).ok());
}

TEST(AdmissionTest, BoundsBytes) {
  auto admission = MakeAdmission(kSmall);
  auto ticket = admission->Admit({.bytes = 60});
  ASSERT_TRUE(ticket.ok());
  EXPECT_TRUE(admission->Admit({.bytes = 40}).ok()) << "the bound itself may be reached";
  const auto refused = admission->Admit({.bytes = 41});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--max-inflight-bytes"));
  ExpectInflight(*admission, 1, 60, 0);
}

TEST(AdmissionTest, AnAnswerCountsAfterItsRequest) {
  auto admission = MakeAdmission(kSmall);
  auto ticket = admission->Admit({.bytes = 60, .model = "m", .model_bounds = kModelBounds});
  ASSERT_TRUE(ticket.ok());
  Admission::Ticket answer = ticket->ForAnswer(90);
  ExpectInflight(*admission, 1, 150, 0);
  ticket->Release();
  ExpectInflight(*admission, 0, 90, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(admission->Admit({.bytes = 11}).status())) << "it has to be held";
  EXPECT_TRUE(admission->AwaitIdle(absl::InfinitePast())) << "it is answered";
  answer.Release();
  ExpectInflight(*admission, 0, 0, 0);
}

TEST(AdmissionTest, WhatCanNeverFitIsNotWorthTryingAgain) {
  auto admission = MakeAdmission(kSmall);
  EXPECT_EQ(admission->Admit({.bytes = 101}).status().code(), absl::StatusCode::kInvalidArgument);
  auto ticket = admission->Admit({.bytes = 1});
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(ticket->AddDecodedBytes(51).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(ticket->AddDecodedBytes(30).ok());
  EXPECT_EQ(ticket->AddDecodedBytes(21).code(), absl::StatusCode::kInvalidArgument)
      << "together they never fit";
  EXPECT_TRUE(ticket->AddDecodedBytes(20).ok());
  ExpectInflight(*admission, 1, 1, 50);
}

TEST(AdmissionTest, BoundsOfAModelHoldForItAlone) {
  auto admission = MakeAdmission(kSmall);
  const Applicant of_m{.bytes = 20, .model = "m", .model_bounds = kModelBounds};
  auto first = admission->Admit(of_m);
  auto second = admission->Admit(of_m);
  ASSERT_TRUE(first.ok() && second.ok());
  const auto refused = admission->Admit(of_m);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("model 'm' is at its limit of 2 requests in flight (max_inflight_requests in its"));
  EXPECT_EQ(ShedReasonOf(refused.status()), ShedReason::kModelBound);
  ExpectInflight(*admission, 2, 40, 0);

  EXPECT_TRUE(admission->Admit({.bytes = 20, .model = "other", .model_bounds = kModelBounds}).ok());
  EXPECT_TRUE(admission->Admit({.bytes = 20, .model = "boundless"}).ok());
  first->Release();
  EXPECT_EQ(admission->Admit({.bytes = 41, .model = "m", .model_bounds = kModelBounds}).status().code(),
            absl::StatusCode::kResourceExhausted)
      << "20 bytes of 60 are held";
  EXPECT_EQ(admission->Admit({.bytes = 61, .model = "m", .model_bounds = kModelBounds}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(admission->Admit({.bytes = 40, .model = "m", .model_bounds = kModelBounds}).ok());
}

TEST(AdmissionTest, PixelsCountToTheModelsBoundToo) {
  auto admission = MakeAdmission(kSmall);
  const Applicant of_m{.model = "m", .model_bounds = kModelBounds};
  auto first = admission->Admit(of_m);
  auto second = admission->Admit(of_m);
  ASSERT_TRUE(first.ok() && second.ok() && first->AddDecodedBytes(15).ok());
  const absl::Status refused = second->AddDecodedBytes(6);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("max_decoded_bytes in its config.pbtxt"));
  EXPECT_EQ(first->AddDecodedBytes(6).code(), absl::StatusCode::kInvalidArgument)
      << "together they never fit";
  first->Release();
  EXPECT_TRUE(second->AddDecodedBytes(20).ok());
  ExpectInflight(*admission, 1, 0, 20);
}

TEST(AdmissionTest, APartOfWhatIsInCountsToItsModelAlone) {
  AdmissionOptions options = kSmall;
  options.max_inflight_requests = 1;
  options.clients = {.requests_per_second = 1, .burst = 1};
  auto admission = MakeAdmission(options);
  const auto whole = admission->Admit({.bytes = 90, .client = "c"});
  ASSERT_TRUE(whole.ok());
  admission->StartDraining();
  const Applicant part{
      .bytes = 30, .client = "c", .model = "m", .model_bounds = kModelBounds, .nested = true};
  auto first = admission->Admit(part);
  auto second = admission->Admit(part);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(ShedReasonOf(admission->Admit(part).status()), ShedReason::kModelBound);
  ExpectInflight(*admission, 1, 90, 0);

  EXPECT_TRUE(first->AddDecodedBytes(20).ok());
  ExpectInflight(*admission, 1, 90, 20);
  EXPECT_EQ(ShedReasonOf(second->AddDecodedBytes(1)), ShedReason::kModelBound);
  {
    const Admission::Ticket answer = first->ForAnswer(5);
    ExpectInflight(*admission, 1, 95, 20);
  }
  Admission::Ticket moved = *std::move(first);
  second->Release();
  ExpectInflight(*admission, 1, 90, 20);
  moved.Release();
  ExpectInflight(*admission, 1, 90, 0);
}

TEST(AdmissionTest, RefusalsSayWhyAndWhenToComeAgain) {
  FakeClock clock;
  auto admission = MakeAdmission(kSmall, &clock);
  std::vector<Admission::Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(admission->Admit({.bytes = 1}).value());
  const absl::Status early = admission->Admit({.bytes = 1}).status();
  EXPECT_EQ(ShedReasonOf(early), ShedReason::kRequests);
  EXPECT_EQ(RetryAfter(early), DrainRate::kUnknown) << "nothing has ended yet";
  // Ten requests end per second.
  for (int i = 0; i < 20; ++i) {
    clock.Advance(absl::Milliseconds(100));
    tickets.erase(tickets.begin());
    tickets.push_back(admission->Admit({.bytes = 1}).value());
  }
  const auto hint = RetryAfter(admission->Admit({.bytes = 1}).status());
  ASSERT_TRUE(hint.has_value());
  EXPECT_NEAR(absl::ToDoubleSeconds(*hint), 0.3, 0.03) << "three in flight at ten a second";
  const absl::Status bytes = admission->Admit({.bytes = 100}).status();
  EXPECT_EQ(ShedReasonOf(bytes), ShedReason::kRequests) << "the first bound that is reached";
  tickets.pop_back();
  EXPECT_EQ(ShedReasonOf(admission->Admit({.bytes = 99}).status()), ShedReason::kBytes);
  ASSERT_TRUE(tickets[0].AddDecodedBytes(50).ok());
  EXPECT_EQ(ShedReasonOf(tickets[1].AddDecodedBytes(1)), ShedReason::kDecodedBytes);
}

TEST(AdmissionTest, AClientThatSendsTooFastIsRefusedAndOthersAreNot) {
  FakeClock clock;
  AdmissionOptions options;
  options.clients = {.requests_per_second = 2, .burst = 1};
  auto admission = MakeAdmission(options, &clock);
  EXPECT_TRUE(admission->CountRequest("a").ok());
  const absl::Status refused = admission->CountRequest("a");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ShedReasonOf(refused), ShedReason::kClientRate);
  EXPECT_EQ(RetryAfter(refused), absl::Milliseconds(500));
  EXPECT_TRUE(admission->CountRequest("b").ok());
  clock.Advance(absl::Milliseconds(500));
  EXPECT_TRUE(admission->CountRequest("a").ok());
  ExpectInflight(*admission, 0, 0, 0);
}

TEST(AdmissionTest, ATokensOwnRateReplacesTheOneOfAllClients) {
  FakeClock clock;
  AdmissionOptions options = kSmall;
  options.clients = {.requests_per_second = 1, .burst = 1};
  auto admission = MakeAdmission(options, &clock);
  admission->SetClientQuotas({{"token:1", {.requests_per_second = 3}}});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(admission->CountRequest("token:1").ok());
  EXPECT_THAT(std::string(admission->CountRequest("token:1").message()), HasSubstr("rate= of its line"));
  EXPECT_TRUE(admission->CountRequest("token:2").ok());
  EXPECT_THAT(std::string(admission->CountRequest("token:2").message()),
              HasSubstr("--client-requests-per-second"));
}

TEST(AdmissionTest, ATokensRequestsInFlightAreBounded) {
  auto admission = MakeAdmission(kSmall);
  admission->SetClientQuotas({{"token:1", {.max_requests = 1}}});
  auto ticket = admission->Admit({.bytes = 1, .client = "token:1"});
  ASSERT_TRUE(ticket.ok());
  EXPECT_TRUE(admission->Admit({.bytes = 1, .client = "token:1", .nested = true}).ok());
  EXPECT_TRUE(admission->Admit({.bytes = 1, .client = "token:2"}).ok());
  const auto refused = admission->Admit({.bytes = 1, .client = "token:1"});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ShedReasonOf(refused.status()), ShedReason::kClientRequests);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("inflight= of its line"));
  EXPECT_TRUE(RetryAfter(refused.status()).has_value());
  // Once it is answered, the client's next request is admitted while the ticket is still held.
  ticket->ReturnRequest();
  auto next = admission->Admit({.bytes = 1, .client = "token:1"});
  EXPECT_TRUE(next.ok()) << next.status();
  ticket->Release();
  EXPECT_FALSE(admission->Admit({.bytes = 1, .client = "token:1"}).ok()) << "returned once, not twice";
}

TEST(AdmissionTest, ATokensOwnBoundOfRequestsTakesThePlaceOfItsShare) {
  AdmissionOptions options = kSmall;
  options.max_inflight_requests = 4;
  const auto admission = MakeAdmission(options);
  admission->SetClientQuotas({{"token:1", {.max_requests = 3}}});
  std::vector<Admission::Ticket> tickets;
  const auto admits = [&](const char* client) {
    auto ticket = admission->Admit({.client = client});
    if (ticket.ok()) tickets.push_back(*std::move(ticket));
    return ticket.status();
  };
  EXPECT_TRUE(admits("token:2").ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(admits("token:1").ok());
  tickets.clear();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(admits("token:2").ok());
  EXPECT_THAT(std::string(admits("token:2").message()), HasSubstr("half of --max-inflight-requests"));
}

TEST(AdmissionTest, RatesThatMakeNoSenseAreRefusedByTheirFlag) {
  AdmissionOptions options;
  options.clients.requests_per_second = -1;
  EXPECT_THAT(std::string(Admission::Create(options, Clock::Real()).status().message()),
              HasSubstr("--client-requests-per-second is -1"));
  options.clients = {.requests_per_second = 0, .burst = 5};
  EXPECT_THAT(std::string(Admission::Create(options, Clock::Real()).status().message()),
              HasSubstr("--client-burst is 5 without --client-requests-per-second"));
}

TEST(AdmissionTest, NegativeAmountsAreRefused) {
  auto admission = MakeAdmission(kSmall);
  EXPECT_EQ(admission->Admit({.bytes = -1}).status().code(), absl::StatusCode::kInvalidArgument);
  auto ticket = admission->Admit({.bytes = 0});
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(ticket->AddDecodedBytes(-1).code(), absl::StatusCode::kInvalidArgument);
  ExpectInflight(*admission, 1, 0, 0);
}

TEST(AdmissionTest, HugeAmountsDoNotOverflow) {
  auto admission = MakeAdmission(kSmall);
  auto ticket = admission->Admit({.bytes = 99});
  ASSERT_TRUE(ticket.ok() && ticket->AddDecodedBytes(49).ok());
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(admission->Admit({.bytes = kHuge}).ok());
  EXPECT_FALSE(ticket->AddDecodedBytes(kHuge).ok());
  ExpectInflight(*admission, 1, 99, 49);
}

TEST(AdmissionTest, BoundsPixelsAcrossTickets) {
  auto admission = MakeAdmission(kSmall);
  auto first = admission->Admit({.bytes = 1});
  auto second = admission->Admit({.bytes = 1});
  ASSERT_TRUE(first.ok() && second.ok() && first->AddDecodedBytes(40).ok());
  const absl::Status refused = second->AddDecodedBytes(11);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--max-decoded-bytes"));
  first->Release();
  EXPECT_TRUE(second->AddDecodedBytes(11).ok());
  ExpectInflight(*admission, 1, 1, 11);
}

// A client that is alone may hold all of it. The first request of another one then finds no room, and the
// next one does.
TEST(AdmissionTest, AClientLeavesHalfOfTheDecodedBytesToOthers) {
  const auto admission = MakeAdmission(kSmall);
  auto large = admission->Admit({.client = "a"});
  ASSERT_TRUE(large.ok() && large->AddDecodedBytes(50).ok());
  auto small = admission->Admit({.client = "b"});
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(ShedReasonOf(small->AddDecodedBytes(1)), ShedReason::kDecodedBytes);
  large->ReturnRequest();
  auto again = admission->Admit({.client = "a"});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(ShedReasonOf(again->AddDecodedBytes(26)), ShedReason::kClientDecodedBytes);
  EXPECT_TRUE(again->AddDecodedBytes(25).ok()) << "what was given back counts no more";
  EXPECT_TRUE(small->AddDecodedBytes(25).ok());
  ExpectInflight(*admission, 2, 0, 50);
}

TEST(AdmissionTest, TicketGivesBackOnceHoweverItIsMoved) {
  auto admission = MakeAdmission(kSmall);
  Admission::Ticket kept;
  EXPECT_EQ(kept.AddDecodedBytes(1).code(), absl::StatusCode::kFailedPrecondition);
  {
    auto ticket = admission->Admit({.bytes = 10});
    ASSERT_TRUE(ticket.ok() && ticket->AddDecodedBytes(5).ok());
    Admission::Ticket moved = *std::move(ticket);
    kept = std::move(moved);
  }
  ExpectInflight(*admission, 1, 10, 5);
  kept = admission->Admit({.bytes = 20}).value();
  ExpectInflight(*admission, 1, 20, 0);
  kept.Release();
  kept.Release();
  ExpectInflight(*admission, 0, 0, 0);
}

TEST(AdmissionTest, ATicketThatHoldsNothingHasNoAnswerToHold) {
  auto admission = MakeAdmission(kSmall);
  const Admission::Ticket nothing;
  const Admission::Ticket answer = nothing.ForAnswer(50);
  ExpectInflight(*admission, 0, 0, 0);
}

TEST(AdmissionTest, AnAnswerOfAModelWithoutBoundsCountsToTheServerAlone) {
  auto admission = MakeAdmission(kSmall);
  const auto ticket = admission->Admit({.bytes = 10, .model = "boundless"});
  ASSERT_TRUE(ticket.ok());
  const Admission::Ticket answer = ticket->ForAnswer(90);
  ExpectInflight(*admission, 1, 100, 0);
}

TEST(AdmissionTest, AModelMayBoundAnyOneOfThem) {
  auto admission = MakeAdmission(kSmall);
  const Applicant by_bytes{.bytes = 10, .model = "bytes", .model_bounds = {.bytes = 15}};
  const Applicant by_pixels{.model = "pixels", .model_bounds = {.decoded_bytes = 7}};
  auto first = admission->Admit(by_bytes);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ShedReasonOf(admission->Admit(by_bytes).status()), ShedReason::kModelBound);
  auto second = admission->Admit(by_pixels);
  auto third = admission->Admit(by_pixels);
  ASSERT_TRUE(second.ok() && third.ok());
  EXPECT_TRUE(second->AddDecodedBytes(7).ok());
  EXPECT_EQ(ShedReasonOf(third->AddDecodedBytes(1)), ShedReason::kModelBound);
  EXPECT_TRUE(first->AddDecodedBytes(8).ok()) << "it has no bound of them";
}

TEST(AdmissionTest, DrainingRefusesTheNewAndKeepsTheOld) {
  auto admission = MakeAdmission(kSmall);
  auto ticket = admission->Admit({.bytes = 1});
  ASSERT_TRUE(ticket.ok());
  admission->StartDraining();
  admission->StartDraining();
  EXPECT_EQ(admission->Admit({.bytes = 1}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(ticket->AddDecodedBytes(1).ok()) << "what was accepted is finished";
}

TEST(AdmissionTest, AwaitIdleWakesWithTheLastTicket) {
  FakeClock clock;
  auto admission = MakeAdmission(kSmall, &clock);
  auto first = admission->Admit({.bytes = 1});
  auto second = admission->Admit({.bytes = 1});
  ASSERT_TRUE(first.ok() && second.ok());
  bool idle = false;
  std::thread drain([&] { idle = admission->AwaitIdle(clock.Now() + absl::Seconds(25)); });
  clock.AwaitWaiters(1);
  first->Release();
  clock.Advance(absl::Seconds(24));
  second->Release();
  drain.join();
  EXPECT_TRUE(idle);
}

TEST(AdmissionTest, AReturnedRequestMakesRoomWhileItsTicketIsHeld) {
  auto admission = MakeAdmission(kSmall);
  const auto admit = [&] {
    return admission->Admit(
        {.bytes = 30, .model = "m", .model_bounds = {.requests = 1, .decoded_bytes = 20}});
  };
  auto ticket = admit();
  ASSERT_TRUE(ticket.ok() && ticket->AddDecodedBytes(20).ok());
  EXPECT_FALSE(admit().ok());
  ticket->ReturnRequest();
  ticket->ReturnRequest();
  ExpectInflight(*admission, 0, 30, 0);
  {
    auto next = admit();
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_TRUE(next->AddDecodedBytes(20).ok());
  }
  EXPECT_FALSE(admission->AwaitIdle(absl::InfinitePast())) << "its answer is on its way";
  ticket->Release();
  EXPECT_TRUE(admission->AwaitIdle(absl::InfinitePast()));
  ExpectInflight(*admission, 0, 0, 0);
}

TEST(AdmissionTest, AwaitIdleGivesUpAtItsDeadline) {
  FakeClock clock;
  auto admission = MakeAdmission(kSmall, &clock);
  EXPECT_TRUE(admission->AwaitIdle(clock.Now())) << "idle from the start";
  auto ticket = admission->Admit({.bytes = 1});
  ASSERT_TRUE(ticket.ok());
  bool idle = true;
  std::thread drain([&] { idle = admission->AwaitIdle(clock.Now() + absl::Seconds(25)); });
  clock.AwaitWaiters(1);
  clock.Advance(absl::Seconds(25));
  drain.join();
  EXPECT_FALSE(idle);
}

// Threads admit, add pixels and release at random: the bounds hold at every check, and in the end nothing is
// held.
TEST(AdmissionTest, CreditsReturnToZeroUnderManyThreads) {
  auto admission = MakeAdmission(kSmall);
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&admission, seed] {
      std::mt19937 random(seed);
      std::vector<Admission::Ticket> held;
      for (int step = 0; step < 5000; ++step) {
        const Applicant applicant{.bytes = static_cast<int64_t>(random() % 60),
                                  .client = random() % 2 == 0 ? "a" : "b",
                                  .model = "m",
                                  .model_bounds = random() % 2 == 0 ? kModelBounds : Inflight()};
        if (auto ticket = admission->Admit(applicant); ticket.ok()) {
          ticket->AddDecodedBytes(random() % 30).IgnoreError();
          held.push_back(*std::move(ticket));
        }
        const Inflight now = admission->inflight();
        EXPECT_LE(now.requests, kSmall.max_inflight_requests);
        EXPECT_LE(now.bytes, kSmall.max_inflight_bytes);
        EXPECT_LE(now.decoded_bytes, kSmall.max_decoded_bytes);
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
