// Cores of its own for an instance that is pinned.
#pragma once

#include <vector>

#include "absl/status/status.h"

namespace saccade::server {

// Those that this thread may run on, ascending.
std::vector<int> AllowedCores();

// `count` of `allowed`, beginning with the one at `first` and going round: whoever asks for more than there
// are shares them. No core comes twice. REQUIRES: allowed is not empty; first >= 0, count > 0.
std::vector<int> CoresFrom(const std::vector<int>& allowed, int first, int count);

// Keeps this thread to `cores`, and those that it starts from here on: its team of OpenMP threads, if no
// parallel region has run on it yet.
absl::Status KeepToCores(const std::vector<int>& cores);

}  // namespace saccade::server
