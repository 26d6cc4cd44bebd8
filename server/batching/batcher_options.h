#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::server {

struct BatcherOptions {
  // Pictures in one forward pass. On a CPU the gain from more is small and everybody waits for the whole
  // pass.
  int64_t max_batch_size = 8;

  // Pictures waiting, over all buckets. Bounded, because an unbounded queue turns overload into memory
  // exhaustion and into answers that come too late for everybody. At least max_batch_size, or a full batch
  // could never gather.
  int64_t max_queue_size = 256;

  // How long an idle instance waits for company, counted from the oldest request's arrival. Zero, because
  // waiting only pays where a batch is much cheaper than its members one by one; batches form by themselves
  // behind a busy instance.
  absl::Duration max_queue_delay = absl::ZeroDuration();

  // How long after its arrival a request may still be waiting, whatever deadline its client gave (Triton's
  // default_timeout_microseconds with the action REJECT). Infinite, because most clients say what they want
  // by their deadline. Longer than max_queue_delay, or a lone request would always time out.
  absl::Duration queue_timeout = absl::InfiniteDuration();
};

// INVALID_ARGUMENT names the option, its value and what it has to be.
absl::Status CheckOptions(const BatcherOptions& options);

}  // namespace saccade::server
