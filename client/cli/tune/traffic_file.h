// Recorded traffic: a text file with a line for each request, "SECONDS [BUCKET]". Empty lines and lines that
// begin with '#' are skipped.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/simulation/workload.h"

namespace saccade::client {

// Returns the arrivals in the order of the lines; Arrival::bucket is an index into `buckets`, 0 for a line
// without one. INVALID_ARGUMENT begins with "line N" if a line is wrong: a time that is not a number, is
// negative or smaller than that of the line before, or a bucket that is not in `buckets`. Fewer than two
// times are an error, too.
absl::StatusOr<std::vector<server::simulation::Arrival>> ParseTraffic(
    absl::string_view text, const std::vector<std::string>& buckets);

// Requests per second: the mean from the first to the last. REQUIRES: ParseTraffic returned `arrivals`.
double RateOf(const std::vector<server::simulation::Arrival>& arrivals);

}  // namespace saccade::client
