// Returns the allocator's free memory to the operating system.
#pragma once

namespace saccade::server {

// Call it after freeing something large: the allocator itself returns memory slowly or never. Allocations of
// other threads block meanwhile, for a few milliseconds per 100 MB.
void ReturnFreeMemory();

}  // namespace saccade::server
