// Counts failed calls by their code.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace saccade::client {

struct FailureCount {
  int64_t calls = 0;
  // Message of the first of the calls.
  std::string first_message;
};

// By the name of the canonical code, e.g. "UNAVAILABLE".
using FailureCounts = std::map<std::string, FailureCount>;

// REQUIRES: !status.ok().
inline void CountFailure(const absl::Status& status, FailureCounts& counts) {
  FailureCount& count = counts[absl::StatusCodeToString(status.code())];
  if (count.calls++ == 0) count.first_message = std::string(status.message());
}

}  // namespace saccade::client
