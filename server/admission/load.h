// What is in flight of the whole server, or of one model, and its bounds.
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
  // `model` is empty for the server. What is 0 in `most` has no bound.
  Load(absl::string_view model, const Inflight& most) : model_(model), most_(most) {}

  void SetMost(const Inflight& most) { most_ = most; }
  const Inflight& held() const { return held_; }

  // Whether `more` fits beside what is held, `own` of which is the same request's. RESOURCE_EXHAUSTED says
  // when to come again; INVALID_ARGUMENT that no wait could help.
  absl::Status Check(const Inflight& more, const Inflight& own, absl::Time now);

  void Add(const Inflight& more, absl::Time now);
  void Return(const Inflight& held, absl::Time now);

 private:
  void Advance(absl::Time now) { drain_.Advance(now, held_.requests > 0); }

  // Empty for the server's own.
  const std::string model_;
  Inflight most_;
  Inflight held_;
  DrainRate drain_;
};

}  // namespace saccade::server
