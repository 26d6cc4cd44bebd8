// The amounts in flight and the bounds of the whole server, or of one model.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/admission/drain_rate.h"
#include "server/core/inflight.h"

namespace saccade::server {

// Not thread-safe.
class Load {
 public:
  // `model` is empty for the server. A 0 in `max` means no bound.
  Load(absl::string_view model, const Inflight& max) : model_(model), max_(max) {}

  void SetMax(const Inflight& max) { max_ = max; }
  const Inflight& held() const { return held_; }

  // Checks whether `more` fits in addition to what is held; `own` of that belongs to the same request.
  // RESOURCE_EXHAUSTED states when to retry; INVALID_ARGUMENT means that waiting cannot help.
  absl::Status Check(const Inflight& more, const Inflight& own, absl::Time now);

  // When a rejected request may try again, estimated from the rate at which requests end.
  absl::Duration TimeToRetry(absl::Time now);

  void Add(const Inflight& more, absl::Time now);
  void Return(const Inflight& held, absl::Time now);

 private:
  void Advance(absl::Time now) { drain_.Advance(now, held_.requests > 0); }

  // Empty for the server.
  const std::string model_;
  Inflight max_;
  Inflight held_;
  DrainRate drain_;
};

}  // namespace saccade::server
