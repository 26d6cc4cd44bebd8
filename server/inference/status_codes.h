// Status codes of answers: this daemon's, or Triton's where they differ (docs/compatibility.md, Status
// codes).
#pragma once

#include "absl/status/status.h"

namespace saccade::server {

// Each function returns `status` with Triton's code if `triton` was set, and as it is otherwise. Message and
// payloads stay. OK stays OK, and converting twice changes nothing more. Thread-safe.
class StatusCodes {
 public:
  explicit StatusCodes(bool triton = false) : triton_(triton) {}

  bool triton() const { return triton_; }

  // A request for a model that is not ready; `names_version` tells whether the request names a version.
  absl::Status OfMissingModel(const absl::Status& status, bool names_version) const;
  // A request that was not answered. Triton says UNAVAILABLE of a full queue and of requests that waited too
  // long; it has no bounds on requests and bytes, whose rejections are answered in the same way.
  absl::Status OfInference(const absl::Status& status) const;
  absl::Status OfStatistics(const absl::Status& status) const;
  absl::Status OfLoad(const absl::Status& status) const;
  absl::Status OfUnload(const absl::Status& status) const;
  // Over HTTP only: over gRPC, Triton's code for a region that exists is this daemon's.
  absl::Status OfRegistrationOverHttp(const absl::Status& status) const;

 private:
  absl::Status Convert(const absl::Status& status, absl::StatusCode from, absl::StatusCode to) const;

  bool triton_;
};

}  // namespace saccade::server
