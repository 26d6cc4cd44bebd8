// What is free in the allocator.
#pragma once

namespace saccade::server {

// Gives it back to the system. The allocator itself does so slowly, or never: for after something large has
// gone. Other threads that allocate wait for it, for some milliseconds a hundred megabytes.
void ReturnFreeMemory();

}  // namespace saccade::server
