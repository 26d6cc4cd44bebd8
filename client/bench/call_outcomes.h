// Counts the outcomes of the calls of an open loop with a deadline; each call is counted once.
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
  kInTime,   // answered before its deadline
  kLate,     // answered after its deadline, or not at all before it
  kRefused,  // rejected by the daemon with a reason
  kFailed,
};
inline constexpr size_t kCallOutcomes = 4;

// Returns the reason of the ErrorInfo that the daemon sends with a rejection; empty if there is none.
std::string RefusalReason(const absl::Status& status);

// Thread-safe.
class CallOutcomes {
 public:
  struct Totals {
    std::array<int64_t, kCallOutcomes> counts = {};
    // Rejections by reason, and failures by code with the number and the first message.
    std::map<std::string, int64_t> refused;
    std::map<std::string, std::pair<int64_t, std::string>> failed;
    // Responses in time, by connection.
    std::vector<int64_t> clients;
    // Outcomes by the second in which the calls were due.
    std::vector<std::array<int64_t, kCallOutcomes>> seconds;
    // Latencies: responses in time since they were due, rejections since they were sent.
    Latency answers;
    Latency refusals;
    // How late the calls were sent.
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
