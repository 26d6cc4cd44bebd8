#include "client/load/outcomes.h"

#include <utility>

#include "absl/strings/cord.h"
#include "client/cpp/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace saccade::client {
namespace {

CallOutcome OutcomeOf(const LoadSample& call, absl::Duration deadline, const std::string& reason) {
  if (call.status.ok()) return call.latency() <= deadline ? CallOutcome::kInTime : CallOutcome::kLate;
  if (!reason.empty()) return CallOutcome::kRefused;
  // Without a reason it is gRPC's own status: no response arrived before the deadline.
  return absl::IsDeadlineExceeded(call.status) ? CallOutcome::kLate : CallOutcome::kFailed;
}

}  // namespace

std::string RefusalReason(const absl::Status& status) {
  const auto details = status.GetPayload(kDetailsPayload);
  google::rpc::Status message;
  if (!details || !message.ParseFromString(std::string(*details))) return "";
  for (const auto& detail : message.details()) {
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

LoadOutcomes CountOutcomes(const LoadResult& result, int connections, absl::Duration deadline) {
  LoadOutcomes outcomes;
  outcomes.in_time_by_connection.resize(connections);
  std::vector<absl::Duration> answers;
  std::vector<absl::Duration> refusals;
  std::vector<absl::Duration> held;
  for (const LoadSample& call : result.samples) {
    std::string reason = RefusalReason(call.status);
    const CallOutcome outcome = OutcomeOf(call, deadline, reason);
    const auto second = static_cast<size_t>(absl::ToInt64Seconds(call.due));
    if (outcomes.seconds.size() <= second) outcomes.seconds.resize(second + 1);
    ++outcomes.seconds[second][static_cast<size_t>(outcome)];
    ++outcomes.counts[static_cast<size_t>(outcome)];
    held.push_back(call.held());
    switch (outcome) {
      case CallOutcome::kInTime:
        ++outcomes.in_time_by_connection[call.connection];
        answers.push_back(call.latency());
        break;
      case CallOutcome::kRefused:
        ++outcomes.refused[std::move(reason)];
        refusals.push_back(call.ended - call.sent);
        break;
      case CallOutcome::kFailed:
        CountFailure(call.status, outcomes.failed);
        break;
      case CallOutcome::kLate:
        break;
    }
  }
  outcomes.answers = Summarise(std::move(answers));
  outcomes.refusals = Summarise(std::move(refusals));
  outcomes.held = Summarise(std::move(held));
  return outcomes;
}

}  // namespace saccade::client
