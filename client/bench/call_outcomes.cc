#include "client/bench/call_outcomes.h"

#include <utility>

#include "absl/strings/cord.h"
#include "client/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace saccade::client {
namespace {

CallOutcome OutcomeOf(const EndedCall& call, absl::Duration deadline, const std::string& reason) {
  if (call.status.ok()) return call.ended - call.due <= deadline ? CallOutcome::kInTime : CallOutcome::kLate;
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

CallOutcomes::CallOutcomes(int clients, absl::Duration deadline) : deadline_(deadline) {
  totals_.clients.resize(clients);
}

void CallOutcomes::Count(const EndedCall& call) {
  std::string reason = RefusalReason(call.status);
  const CallOutcome outcome = OutcomeOf(call, deadline_, reason);
  const auto second = static_cast<size_t>(absl::ToInt64Seconds(call.due));
  const absl::MutexLock lock(&mutex_);
  if (totals_.seconds.size() <= second) totals_.seconds.resize(second + 1);
  ++totals_.seconds[second][static_cast<size_t>(outcome)];
  ++totals_.counts[static_cast<size_t>(outcome)];
  behind_.push_back(call.sent - call.due);
  switch (outcome) {
    case CallOutcome::kInTime:
      ++totals_.clients[call.client];
      answers_.push_back(call.ended - call.due);
      break;
    case CallOutcome::kRefused:
      ++totals_.refused[std::move(reason)];
      refusals_.push_back(call.ended - call.sent);
      break;
    case CallOutcome::kFailed: {
      auto& [count, first] = totals_.failed[absl::StatusCodeToString(call.status.code())];
      if (count++ == 0) first = std::string(call.status.message());
      break;
    }
    case CallOutcome::kLate:
      break;
  }
}

CallOutcomes::Totals CallOutcomes::Sum() const {
  const absl::MutexLock lock(&mutex_);
  Totals totals = totals_;
  totals.answers = Summarise(answers_);
  totals.refusals = Summarise(refusals_);
  totals.behind = Summarise(behind_);
  return totals;
}

}  // namespace saccade::client
