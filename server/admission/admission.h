// The server's front door: how much may be in flight, over all models and of each, and how fast each client
// may send.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/admission/client_rates.h"
#include "server/admission/load.h"
#include "server/core/clock.h"
#include "server/core/inflight.h"

namespace saccade::server {

struct AdmissionOptions {
  // --max-inflight-requests. Far above what batching needs; it bounds the per-request cost of whatever is
  // small.
  int64_t max_inflight_requests = 1024;

  // --max-inflight-bytes. Encoded pictures and tensors as they came, which stay in memory until answered, and
  // large answers until they are sent.
  int64_t max_inflight_bytes = int64_t{1} << 30;

  // --max-inflight-pixels. A decoded pixel takes at least three bytes, and a small file can hold very many. A
  // network's input counts as four for each pixel of its bucket and view, as it is held in float32.
  int64_t max_inflight_pixels = int64_t{256} << 20;

  ClientRateOptions clients = {};
};

// Who wants to come in.
struct Applicant {
  // Of the request as it came.
  int64_t bytes = 0;
  // Whose rate it counts to.
  absl::string_view client = {};
  // A model of the repository, and what may be in flight of it; 0 leaves it to the server's bounds.
  absl::string_view model = {};
  Inflight model_bounds = {};
  // A part of a request that is in already, and holds a ticket as long as this one: the server counts neither
  // its request nor its bytes again, takes it although it drains, and asks for no rate. Its pixels count.
  bool nested = false;
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

    // For an answer of so many bytes, which outlives its request's ticket: they are computed and have to be
    // held, so they count even where there is no room for them, and keep out who comes next.
    Ticket ForAnswer(int64_t bytes) const;

    // Gives everything back now.
    void Release();

   private:
    friend class Admission;
    Ticket(Admission* admission, Load* model, const Inflight& held, bool nested)
        : admission_(admission), model_(model), held_(held), nested_(nested) {}

    Admission* admission_ = nullptr;
    // Null for a model without bounds.
    Load* model_ = nullptr;
    Inflight held_;
    bool nested_ = false;
  };

  // INVALID_ARGUMENT names the flag whose value is not positive. `clock`, the only source of time, must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<Admission>> Create(const AdmissionOptions& options, Clock* clock);

  // REQUIRES: all tickets are gone.
  ~Admission() = default;

  // Takes or refuses a request at once; never blocks. Errors:
  //   UNAVAILABLE         StartDraining was called
  //   RESOURCE_EXHAUSTED  a bound is reached, or the client sends too fast; the message names the bound and
  //                       its flag, the payloads why (ShedReasonOf) and when to come again (RetryAfter)
  //   INVALID_ARGUMENT    the request alone is larger than the bound, so that trying again is no use
  // A request counts to its client's rate even if a bound then refuses it.
  absl::StatusOr<Ticket> Admit(const Applicant& applicant) ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses what comes from now on; what is in flight keeps its tickets (and may still add pixels).
  // Idempotent.
  void StartDraining() ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until nothing is in flight or `deadline` is past; true if nothing is. Meant to follow
  // StartDraining.
  bool AwaitIdle(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  Inflight inflight() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Admission(const AdmissionOptions& options, Clock* clock);

  // Null if it has no bounds of its own.
  Load* LoadOf(const Applicant& applicant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes `more` for a request that holds what `ticket` does so far, or nothing.
  absl::Status Take(const Inflight& more, const Ticket& ticket, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AddPixels(int64_t pixels, const Ticket& ticket) ABSL_LOCKS_EXCLUDED(mutex_);
  void Hold(const Inflight& held, Load* model) ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(const Ticket& ticket) ABSL_LOCKS_EXCLUDED(mutex_);

  Clock* const clock_;
  mutable absl::Mutex mutex_;
  Load server_ ABSL_GUARDED_BY(mutex_);
  // Of the models that have bounds of their own; none is ever removed.
  std::map<std::string, Load, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
  ClientRates clients_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace saccade::server
