// Places for calls that must be answered while the ledger of bytes is full: health.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/core/byte_ledger.h"

namespace saccade::server {

// A small ledger of its own. Each charge is one open call, so the calls are counted as well as their bytes,
// in all and for each client. Thread-safe.
class CallReserve final : public ByteLedger {
 public:
  struct Options {
    // Open calls, in all and of one client. Calls without a client (an empty key) only count in all.
    int64_t max_calls = 1;
    int64_t max_calls_per_client = 1;
    // Bytes that the calls may hold on average: the bounds of bytes are this times those of calls.
    int64_t bytes_per_call = 1;
    // For errors: what the calls are ("health checks"), where their bounds come from ("--max-calls"; empty
    // for bounds that no flag changes), and what a client can do that is refused.
    std::string calls;
    std::string flag;
    std::string flag_per_client;
    std::string advice;
  };

  explicit CallReserve(Options options);

  // Takes a slot for one call. RESOURCE_EXHAUSTED if there is none, in all or for the client; the message
  // says which bound was reached and what to do, the payloads the reason and when to retry (RetryAfter).
  absl::StatusOr<ByteCharge> Charge(absl::string_view client, int64_t bytes) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What all open calls hold.
  int64_t calls() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Held {
    int64_t calls = 0;
    int64_t bytes = 0;
  };

  void Return(absl::string_view client, int64_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);

  bool Fits(const Held& held, int64_t bytes, int64_t max_calls) const;
  absl::Status Refused(absl::string_view whose, const Held& held, int64_t bytes, int64_t max_calls,
                       const std::string& flag) const;
  // Takes back what Charge() has counted for one call.
  void Remove(absl::string_view client, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  Held all_ ABSL_GUARDED_BY(mutex_);
  // Clients that have an open call. std::map, because Abseil's tables are broken after an allocation that
  // fails while they grow.
  std::map<std::string, Held, std::less<>> by_client_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
