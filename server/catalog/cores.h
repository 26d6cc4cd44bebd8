// CPU affinity of pinned instances.
#pragma once

#include <vector>

#include "absl/status/status.h"

namespace saccade::server {

// `count` cores of `allowed`, from index `first` on, wrapping around. No core is listed twice, so at most
// allowed.size() cores are returned. REQUIRES: allowed is not empty; first >= 0, count > 0.
std::vector<int> CoresFrom(const std::vector<int>& allowed, int first, int count);

// Binds this thread to `cores`, and threads that it starts later: its team of OpenMP threads, if it has not
// run a parallel region yet.
absl::Status KeepToCores(const std::vector<int>& cores);

}  // namespace saccade::server
