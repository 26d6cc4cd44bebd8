#include "client/bench/call_outcomes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/cord.h"
#include "client/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace saccade::client {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr absl::Duration kDeadline = absl::Milliseconds(100);

EndedCall Call(int client, absl::Duration due, absl::Duration took, const absl::Status& status) {
  return {.client = client, .due = due, .sent = due, .ended = due + took, .status = status};
}

// A rejection as the daemon sends it.
absl::Status Refusal(const std::string& reason) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  google::rpc::Status message;
  message.add_details()->PackFrom(google::rpc::RetryInfo());
  message.add_details()->PackFrom(info);
  absl::Status status = absl::ResourceExhaustedError("try again later");
  status.SetPayload(kDetailsPayload, absl::Cord(message.SerializeAsString()));
  return status;
}

TEST(CallOutcomes, EveryCallIsCountedOnce) {
  CallOutcomes outcomes(2, kDeadline);
  const absl::Duration quick = absl::Milliseconds(40);
  outcomes.Count(Call(0, absl::ZeroDuration(), quick, absl::OkStatus()));
  outcomes.Count(Call(1, absl::Seconds(0.5), kDeadline, absl::OkStatus()));
  outcomes.Count(Call(0, absl::Seconds(1), kDeadline + absl::Nanoseconds(1), absl::OkStatus()));
  outcomes.Count(Call(0, absl::Seconds(1), kDeadline, absl::DeadlineExceededError("")));
  outcomes.Count(Call(0, absl::Seconds(2.5), quick, Refusal("PREDICTED_LATE")));
  outcomes.Count(Call(0, absl::Seconds(2.5), quick, Refusal("QUEUE_FULL")));
  outcomes.Count(Call(0, absl::Seconds(2.5), quick, absl::UnavailableError("gone")));
  outcomes.Count(Call(0, absl::Seconds(2.5), quick, absl::UnavailableError("gone again")));

  const CallOutcomes::Totals totals = outcomes.Sum();
  EXPECT_THAT(totals.counts, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(totals.refused, ElementsAre(Pair("PREDICTED_LATE", 1), Pair("QUEUE_FULL", 1)));
  EXPECT_THAT(totals.failed, ElementsAre(Pair("UNAVAILABLE", Pair(2, "gone"))));
  EXPECT_THAT(totals.clients, ElementsAre(1, 1));
  EXPECT_THAT(totals.seconds,
              ElementsAre(ElementsAre(2, 0, 0, 0), ElementsAre(0, 2, 0, 0), ElementsAre(0, 0, 2, 2)));
  EXPECT_EQ(totals.answers.p99, kDeadline);
  EXPECT_EQ(totals.refusals.p50, quick);
}

TEST(CallOutcomes, WhatTheDaemonRefusesForItsDeadlineIsNoLateAnswer) {
  absl::Status refused = absl::DeadlineExceededError("it cannot be answered in time");
  refused.SetPayload(kDetailsPayload, *Refusal("DEADLINE").GetPayload(kDetailsPayload));
  CallOutcomes outcomes(1, kDeadline);
  outcomes.Count(Call(0, absl::ZeroDuration(), absl::Milliseconds(1), refused));
  EXPECT_THAT(outcomes.Sum().counts, ElementsAre(0, 0, 1, 0));
}

TEST(CallOutcomes, AReasonThatIsNone) {
  absl::Status status = absl::InternalError("broken");
  EXPECT_EQ(RefusalReason(status), "");
  status.SetPayload(kDetailsPayload, absl::Cord("no message"));
  EXPECT_EQ(RefusalReason(status), "");
}

}  // namespace
}  // namespace saccade::client
