// Time that a request spent in each stage.
#pragma once

#include "absl/time/time.h"

namespace saccade::server {

struct Timings {
  absl::Duration decode = absl::ZeroDuration();
  absl::Duration queue = absl::ZeroDuration();
  absl::Duration infer = absl::ZeroDuration();
  // From the end of the forward pass until the answer is ready to send.
  absl::Duration encode = absl::ZeroDuration();
  absl::Duration total = absl::ZeroDuration();
};

}  // namespace saccade::server
