// Time that a request spent in each stage.
#pragma once

#include "absl/time/time.h"

namespace saccade::server {

struct Timings {
  absl::Duration decode = absl::ZeroDuration();
  absl::Duration queue = absl::ZeroDuration();
  absl::Duration infer = absl::ZeroDuration();
  // The part of `infer` in which the thread of the pass waited for a core. Only known of models whose passes
  // are timed (ReadyModel::times_passes).
  absl::Duration core_wait = absl::ZeroDuration();
  // From the end of the forward pass until the answer is ready to send.
  absl::Duration encode = absl::ZeroDuration();
  absl::Duration total = absl::ZeroDuration();
};

}  // namespace saccade::server
