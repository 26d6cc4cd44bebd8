// Counts the outcomes of an open loop whose calls have a deadline; each call is counted once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/load/failures.h"
#include "client/load/latency.h"
#include "client/load/load.h"

namespace saccade::client {

enum class CallOutcome {
  kInTime,   // answered before its deadline
  kLate,     // answered after its deadline, or not at all before it
  kRefused,  // rejected by the daemon with a reason
  kFailed,
};
inline constexpr size_t kCallOutcomes = 4;

// Number of calls by CallOutcome.
using OutcomeCounts = std::array<int64_t, kCallOutcomes>;

struct LoadOutcomes {
  OutcomeCounts counts = {};
  // Rejections by reason.
  std::map<std::string, int64_t> refused;
  FailureCounts failed;
  // Responses in time, by connection.
  std::vector<int64_t> in_time_by_connection;
  // Outcomes by the second in which the calls were due.
  std::vector<OutcomeCounts> seconds;
  // Latencies of the responses in time, since the calls were due.
  Latency answers;
  // Latencies of the rejections, since the calls were sent.
  Latency refusals;
  // How late the calls were sent.
  Latency held;
};

// Returns the reason of the ErrorInfo that the daemon sends with a rejection; empty if there is none.
std::string RefusalReason(const absl::Status& status);

// `deadline` is that of every call, from when it was due.
LoadOutcomes CountOutcomes(const LoadResult& result, int connections, absl::Duration deadline);

}  // namespace saccade::client
