// Returns the allocator's free memory to the operating system.
#pragma once

#include <cstdint>

namespace saccade::server {

// Call it after freeing something large: the allocator itself returns memory slowly or never. Allocations of
// other threads block meanwhile, for a few milliseconds per 100 MB.
void ReturnFreeMemory();

// Bytes that are allocated now, without those that the allocator keeps.
int64_t AllocatedBytes();

}  // namespace saccade::server
