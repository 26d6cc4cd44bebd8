#include "client/load/outcomes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/cord.h"
#include "client/cpp/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace saccade::client {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::Pair;

constexpr absl::Duration kDeadline = absl::Milliseconds(100);

LoadSample Call(int connection, absl::Duration due, absl::Duration took, const absl::Status& status) {
  return {.connection = connection, .due = due, .sent = due, .ended = due + took, .status = status};
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

TEST(CountOutcomes, CountsEveryCallOnce) {
  LoadResult load;
  const absl::Duration quick = absl::Milliseconds(40);
  load.samples.push_back(Call(0, absl::ZeroDuration(), quick, absl::OkStatus()));
  load.samples.push_back(Call(1, absl::Seconds(0.5), kDeadline, absl::OkStatus()));
  load.samples.push_back(Call(0, absl::Seconds(1), kDeadline + absl::Nanoseconds(1), absl::OkStatus()));
  load.samples.push_back(Call(0, absl::Seconds(1), kDeadline, absl::DeadlineExceededError("")));
  load.samples.push_back(Call(0, absl::Seconds(2.5), quick, Refusal("PREDICTED_LATE")));
  load.samples.push_back(Call(0, absl::Seconds(2.5), quick, Refusal("QUEUE_FULL")));
  load.samples.push_back(Call(0, absl::Seconds(2.5), quick, absl::UnavailableError("gone")));
  load.samples.push_back(Call(0, absl::Seconds(2.5), quick, absl::UnavailableError("gone again")));

  const LoadOutcomes outcomes = CountOutcomes(load, 2, kDeadline);
  EXPECT_THAT(outcomes.counts, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(outcomes.refused, ElementsAre(Pair("PREDICTED_LATE", 1), Pair("QUEUE_FULL", 1)));
  EXPECT_THAT(outcomes.failed, ElementsAre(Pair("UNAVAILABLE", FieldsAre(2, "gone"))));
  EXPECT_THAT(outcomes.in_time_by_connection, ElementsAre(1, 1));
  EXPECT_THAT(outcomes.seconds,
              ElementsAre(ElementsAre(2, 0, 0, 0), ElementsAre(0, 2, 0, 0), ElementsAre(0, 0, 2, 2)));
  EXPECT_EQ(outcomes.answers.p99, kDeadline);
  EXPECT_EQ(outcomes.refusals.p50, quick);
}

TEST(CountOutcomes, ARejectionBecauseOfTheDeadlineIsNotLate) {
  absl::Status refused = absl::DeadlineExceededError("it cannot be answered in time");
  refused.SetPayload(kDetailsPayload, *Refusal("DEADLINE").GetPayload(kDetailsPayload));
  LoadResult load;
  load.samples.push_back(Call(0, absl::ZeroDuration(), absl::Milliseconds(1), refused));
  EXPECT_THAT(CountOutcomes(load, 1, kDeadline).counts, ElementsAre(0, 0, 1, 0));
}

TEST(RefusalReason, IsEmptyWithoutDetails) {
  absl::Status status = absl::InternalError("broken");
  EXPECT_EQ(RefusalReason(status), "");
  status.SetPayload(kDetailsPayload, absl::Cord("no message"));
  EXPECT_EQ(RefusalReason(status), "");
}

}  // namespace
}  // namespace saccade::client
