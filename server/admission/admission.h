// The server's front door: how much may be in flight, over all models and protocols.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"
#include "server/core/inflight.h"

namespace saccade::server {

struct AdmissionOptions {
  // --max-inflight-requests. Far above what batching needs; it bounds the per-request cost of whatever is
  // small.
  int64_t max_inflight_requests = 1024;

  // --max-inflight-bytes. Encoded pictures and tensors as they came; they stay in memory until answered.
  int64_t max_inflight_bytes = int64_t{512} << 20;

  // --max-inflight-pixels. A decoded pixel takes at least three bytes, and a small file can hold very many. A
  // network's input counts as four for each pixel of its bucket and view, as it is held in float32.
  int64_t max_inflight_pixels = int64_t{256} << 20;
};

// Thread-safe.
class Admission {
 public:
  // A request's credit, given back when the ticket is destroyed. Not thread-safe itself, but may be handed
  // from thread to thread. Must not outlive the admission that gave it.
  class Ticket {
   public:
    // Holds nothing.
    Ticket() = default;
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

    // Once the pictures' sizes are known. RESOURCE_EXHAUSTED if others hold too many, INVALID_ARGUMENT if no
    // wait could help; nothing is added then, and what the ticket holds stays held. Never blocks.
    absl::Status AddPixels(int64_t pixels);

    // Gives everything back now.
    void Release();

   private:
    friend class Admission;
    Ticket(Admission* admission, Inflight held) : admission_(admission), held_(held) {}

    Admission* admission_ = nullptr;
    Inflight held_;
  };

  // INVALID_ARGUMENT names the flag whose value is not positive.
  static absl::StatusOr<std::unique_ptr<Admission>> Create(const AdmissionOptions& options);

  // REQUIRES: all tickets are gone.
  ~Admission() = default;

  // Takes or refuses a request of so many bytes at once; never blocks. Errors:
  //   UNAVAILABLE         StartDraining was called
  //   RESOURCE_EXHAUSTED  a bound is reached; the message names it and its flag
  //   INVALID_ARGUMENT    the request alone is larger than the bound, so that trying again is no use
  absl::StatusOr<Ticket> Admit(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses what comes from now on; what is in flight keeps its tickets (and may still add pixels).
  // Idempotent.
  void StartDraining() ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until nothing is in flight or `deadline` is past; true if nothing is. Meant to follow
  // StartDraining.
  bool AwaitIdle(absl::Time deadline, Clock* clock) ABSL_LOCKS_EXCLUDED(mutex_);

  Inflight inflight() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit Admission(const AdmissionOptions& options) : options_(options) {}

  absl::Status AddPixels(int64_t pixels, int64_t held_by_ticket) ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(const Inflight& held) ABSL_LOCKS_EXCLUDED(mutex_);

  const AdmissionOptions options_;
  mutable absl::Mutex mutex_;
  Inflight inflight_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace saccade::server
