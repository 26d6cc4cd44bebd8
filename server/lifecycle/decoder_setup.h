// Creates and owns the decoder as the flags configure it: worker processes, or the daemon's own threads
// (--decode).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/core/clock.h"
#include "server/decode/decoder.h"
#include "server/decode/workers/worker_pool.h"
#include "server/lifecycle/flags.h"
#include "server/metrics/metrics.h"

namespace saccade::server {

// Thread-safe.
class DecoderSetup {
 public:
  // Starts worker processes unless the flags ask for threads, and logs what was chosen. `threads`: how many
  // pictures are decoded at the same time. An error if the flags ask for processes and the system does not
  // allow them. Without such a flag threads are used instead.
  static absl::StatusOr<std::unique_ptr<DecoderSetup>> Create(const Flags& flags, int threads,
                                                              Metrics* metrics, Clock* clock);

  const Decoder& decoder() const { return *decoder_; }
  void RefreshMetrics();

 private:
  DecoderSetup() = default;
  absl::Status StartWorkers(const Flags& flags, int threads, Metrics* metrics, Clock* clock);

  // Null with threads, as is the pool.
  std::unique_ptr<DecodeMetrics> metrics_;
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace saccade::server
