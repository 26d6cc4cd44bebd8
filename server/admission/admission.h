// Admission control: bounds the work in flight, of the server and of each model, and each client's request
// rate, requests in flight and share of the memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/admission/client_quotas.h"
#include "server/admission/client_rates.h"
#include "server/admission/client_shares.h"
#include "server/admission/load.h"
#include "server/core/byte_ledger.h"
#include "server/core/clock.h"
#include "server/core/inflight.h"

namespace saccade::server {

struct AdmissionOptions {
  // --max-inflight-requests. Far above what batching needs; it bounds the per-request overhead of small
  // requests. Beside other clients, one may have half of them, see ClientShares.
  int64_t max_inflight_requests = 1024;

  // --max-inflight-bytes. Counts messages from their first byte, inputs as received (encoded pictures and
  // tensors), which stay in memory until the request is answered, and large answers until they are sent. One
  // client may hold half of it, see max_message_bytes.
  int64_t max_inflight_bytes = int64_t{1} << 30;

  // --max-message-bytes. If it is more than half of max_inflight_bytes, one client may hold this much, so
  // that every allowed message can be received.
  int64_t max_message_bytes = int64_t{64} << 20;

  // --max-decoded-bytes. Counts decoded pictures, three bytes per pixel, because a small file can contain
  // many pixels, and the network inputs made of them, four bytes per float; also the weights that scale a
  // very long picture, detections that wait for those of other parts of the request, and masks of large
  // pictures while they are drawn. Beside other clients, one may hold half of it, see ClientShares.
  int64_t max_decoded_bytes = int64_t{768} << 20;

  ClientRateOptions clients = {};
};

// A request that asks for admission.
struct Applicant {
  // Size of the request as received.
  int64_t bytes = 0;
  // Bytes that were charged to the server by Admission::Charge(), and stay charged at least as long as the
  // ticket is held. Of `bytes`, only the rest counts for the server and the client; all count for the model.
  int64_t charged_bytes = 0;
  // Key of the client for its limits.
  absl::string_view client = {};
  // Model of the repository, with the model's own bounds; 0 means that only the server's bound applies.
  absl::string_view model = {};
  Inflight model_bounds = {};
  // True for a part of a request that is already admitted and holds its ticket at least as long. The server
  // then does not count the request and its bytes again, and admits it even while draining. Its decoded bytes
  // count.
  bool nested = false;
};

// Thread-safe.
class Admission final : public ByteLedger {
  // What a request, an answer or a charge holds.
  struct Holding {
    // Share of the server's bounds. What a nested request's outer ticket or a charge holds is not included.
    Inflight of_server = {};
    // The client whose shares, and whose quota of requests, `of_server` counts to; empty for none.
    std::string client = {};
    // Null for a model without bounds of its own.
    Load* model = nullptr;
    Inflight of_model = {};
    // Whether the request was given back, and its answer is on its way.
    bool answering = false;
  };

 public:
  // What an admitted request holds; the destructor gives it back. Not thread-safe, but may be moved between
  // threads. Must not outlive the Admission that issued it.
  class Ticket {
   public:
    // An empty ticket.
    Ticket() = default;
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

    // Charges memory for decoded pictures or network inputs, once their sizes are known and before it is
    // allocated. Never blocks. RESOURCE_EXHAUSTED if too much is in flight, INVALID_ARGUMENT if it exceeds
    // the bound regardless of other requests; on error nothing is added, and what the ticket holds stays
    // held. FAILED_PRECONDITION for an empty ticket.
    absl::Status AddDecodedBytes(int64_t bytes);

    // Returns a ticket for an answer of `bytes`, which may outlive the request's ticket. The answer already
    // exists, so its bytes count even beyond the bound; later requests are then rejected.
    Ticket ForAnswer(int64_t bytes) const;

    // Gives the request and its decoded bytes back before the rest, just before the request is answered: a
    // client that sends its next request once it has the answer must not be rejected because of this one.
    // AwaitIdle() still waits for the ticket. REQUIRES: the decoded pictures were freed.
    void ReturnRequest();

    // Gives everything back now.
    void Release();

   private:
    friend class Admission;
    Ticket(Admission* admission, Holding held) : admission_(admission), held_(std::move(held)) {}

    Admission* admission_ = nullptr;
    Holding held_;
  };

  // INVALID_ARGUMENT names the flag whose value is out of range. `clock` is the only source of time and must
  // outlive the result.
  static absl::StatusOr<std::unique_ptr<Admission>> Create(const AdmissionOptions& options, Clock* clock);

  // REQUIRES: all tickets and charges have been released.
  ~Admission() override = default;

  // Admits or rejects a request immediately; never blocks. Errors:
  //   UNAVAILABLE         StartDraining was called
  //   RESOURCE_EXHAUSTED  a bound is reached, the client holds its share of the requests or bytes or its
  //                       quota, or the system has no memory left (memory_reserve.h);
  //                       the message names the bound and its flag, the payloads the reason (ShedReasonOf)
  //                       and when to retry (RetryAfter)
  //   INVALID_ARGUMENT    the request alone exceeds a bound, so that retrying is pointless
  absl::StatusOr<Ticket> Admit(const Applicant& applicant) ABSL_LOCKS_EXCLUDED(mutex_);
  // What Admit() would return now, without admitting the request.
  absl::Status CheckAdmission(const Applicant& applicant) ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts a request towards its client's rate: its own (ClientQuota), else the one of all clients.
  // RESOURCE_EXHAUSTED if the client sends too fast; the message and the payloads are as Admit() has them.
  // Call it when a request arrives, before anything is done for it.
  absl::Status CountRequest(absl::string_view client) ABSL_LOCKS_EXCLUDED(mutex_);

  // Replaces the quotas of single clients. Requests in flight are not affected, but count.
  void SetClientQuotas(const ClientQuotaTable& table) ABSL_LOCKS_EXCLUDED(mutex_);

  // Charges bytes to the server and to the client's share of them, within --max-inflight-bytes. Errors as
  // Admit() has them for bytes; a client's rate does not matter. See ByteLedger.
  absl::StatusOr<ByteCharge> Charge(absl::string_view client, int64_t bytes) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Rejects all later requests except nested ones. Requests in flight keep their tickets and may still add
  // decoded bytes. Charges are still made, because health checks are answered to the end. Idempotent.
  void StartDraining() ABSL_LOCKS_EXCLUDED(mutex_);

  bool draining() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until no ticket of a request is held or `deadline` has passed; returns true in the first case.
  // Charges of connections without a request are not waited for. Call StartDraining first.
  bool AwaitIdle(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // `bytes` includes the charges.
  Inflight inflight() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Admission(const AdmissionOptions& options, Clock* clock);

  // What the request would hold, or why it is not admitted.
  absl::StatusOr<Holding> Wanted(const Applicant& applicant, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns null if the model has no bounds of its own.
  Load* LoadOf(const Applicant& applicant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks whether `more` fits in addition to `own`, which the same request holds already.
  absl::Status Check(const Holding& more, const Holding& own, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(const Holding& more, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AddDecodedBytes(int64_t bytes, const Holding& own) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddAnswer(const Holding& answer) ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(const Holding& held) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReturnRequest(Holding& held) ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(absl::string_view client, int64_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);

  Clock* const clock_;
  mutable absl::Mutex mutex_;
  Load server_ ABSL_GUARDED_BY(mutex_);
  // Models that have bounds of their own. Entries are never removed, because tickets point to them.
  std::map<std::string, Load, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
  ClientRates client_rates_ ABSL_GUARDED_BY(mutex_);
  ClientQuotas client_quotas_ ABSL_GUARDED_BY(mutex_);
  ClientShares client_shares_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  // Tickets whose request was given back before they were released.
  int64_t answering_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace saccade::server
