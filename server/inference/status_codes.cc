#include "server/inference/status_codes.h"

#include "absl/strings/cord.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

using Code = absl::StatusCode;

}  // namespace

absl::Status StatusCodes::Convert(const absl::Status& status, Code from, Code to) const {
  if (!triton_ || status.code() != from) return status;
  absl::Status converted(to, status.message());
  status.ForEachPayload([&converted](absl::string_view type, const absl::Cord& payload) {
    converted.SetPayload(type, payload);
  });
  return converted;
}

absl::Status StatusCodes::OfMissingModel(const absl::Status& status, bool names_version) const {
  return names_version ? status : Convert(status, Code::kUnavailable, Code::kNotFound);
}

absl::Status StatusCodes::OfInference(const absl::Status& status) const {
  // Without a hint or a reason, the request itself is too large.
  const bool rejected = RetryAfter(status) || StatedShedReason(status);
  return Convert(rejected ? Convert(status, Code::kResourceExhausted, Code::kUnavailable) : status,
                 Code::kDeadlineExceeded, Code::kUnavailable);
}

absl::Status StatusCodes::OfStatistics(const absl::Status& status) const {
  return Convert(status, Code::kNotFound, Code::kInvalidArgument);
}

absl::Status StatusCodes::OfLoad(const absl::Status& status) const {
  return Convert(Convert(status, Code::kNotFound, Code::kInternal), Code::kFailedPrecondition,
                 Code::kInvalidArgument);
}

absl::Status StatusCodes::OfUnload(const absl::Status& status) const {
  return Convert(status, Code::kNotFound, Code::kInvalidArgument);
}

absl::Status StatusCodes::OfRegistrationOverHttp(const absl::Status& status) const {
  return Convert(status, Code::kAlreadyExists, Code::kInvalidArgument);
}

}  // namespace saccade::server
