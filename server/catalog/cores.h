// Which processors instances keep to.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "server/core/physical_cores.h"

namespace saccade::server {

// The processors of `count` of the cores, from index `first` on, wrapping around. No core is listed twice, so
// at most cores.size() cores are used. REQUIRES: cores is not empty; first >= 0, count > 0.
std::vector<int> ProcessorsOfCores(const std::vector<PhysicalCore>& cores, int first, int count);

// Binds this thread to `processors`, and threads that it starts later: its team of OpenMP threads, if it has
// not run a parallel region yet.
absl::Status KeepToProcessors(const std::vector<int>& processors);

}  // namespace saccade::server
