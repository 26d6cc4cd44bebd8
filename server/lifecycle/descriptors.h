// The process's limit of open files.
#pragma once

#include <cstdint>

namespace saccade::server {

// Raises the soft limit of open files to the hard limit, and returns the limit that then holds. On failure
// the limit stays unchanged.
uint64_t RaiseFileLimit();

}  // namespace saccade::server
