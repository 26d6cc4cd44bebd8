// The supported extensions of the Open Inference Protocol.
#pragma once

#include <string>
#include <vector>

#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Triton's names of the extensions. Each listed one is covered by a test.
std::vector<std::string> Extensions(const SharedMemory& shared_memory);

}  // namespace saccade::server
