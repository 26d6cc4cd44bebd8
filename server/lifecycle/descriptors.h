// The process's file descriptors.
#pragma once

#include <cstdint>

namespace saccade::server {

// Opens /dev/null in place of stdin, stdout and stderr where they are closed. Otherwise the next file or
// connection would get such a number, and log lines would be written into it. Call it first.
void OpenStandardDescriptors();

// Raises the soft limit of open files to the hard limit, and returns the limit that then holds. On failure
// the limit stays unchanged.
uint64_t RaiseFileLimit();

}  // namespace saccade::server
