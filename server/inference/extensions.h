// What beyond the Open Inference Protocol's core is served.
#pragma once

#include <string>
#include <vector>

#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// By Triton's names. Each is one that a test calls: nothing is listed before it works.
std::vector<std::string> Extensions(const SharedMemory& shared_memory);

}  // namespace saccade::server
