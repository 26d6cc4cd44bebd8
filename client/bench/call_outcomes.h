// What became of the calls of an open loop with a deadline: each is counted once.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/bench/infer_load.h"
#include "client/bench/latency.h"

namespace saccade::client {

enum class CallOutcome {
  kInTime,   // answered
  kLate,     // answered later than its deadline, or not at all until then
  kRefused,  // by the daemon, which said why
  kFailed,
};
inline constexpr size_t kCallOutcomes = 4;

// By the ErrorInfo that the daemon gives with what it turns away; empty if it gave none.
std::string RefusalReason(const absl::Status& status);

// Thread-safe.
class CallOutcomes {
 public:
  struct Totals {
    std::array<int64_t, kCallOutcomes> counts = {};
    // Of what was refused; and of failures by code, with the first one's message.
    std::map<std::string, int64_t> refused;
    std::map<std::string, std::pair<int64_t, std::string>> failed;
    // Answers in time, by connection.
    std::vector<int64_t> clients;
    // By the second in which they were due.
    std::vector<std::array<int64_t, kCallOutcomes>> seconds;
    // Since they were due, and of refusals since they were sent.
    Latency answers;
    Latency refusals;
    // By how much the load was behind.
    Latency behind;
  };

  CallOutcomes(int clients, absl::Duration deadline);

  void Count(const EndedCall& call) ABSL_LOCKS_EXCLUDED(mutex_);

  Totals Sum() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const absl::Duration deadline_;
  mutable absl::Mutex mutex_;
  Totals totals_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Duration> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Duration> refusals_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Duration> behind_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::client
