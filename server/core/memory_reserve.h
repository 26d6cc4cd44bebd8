// Memory that is set aside for the moment when the system has none left.
//
// Libraries (LibTorch, OpenMP, Abseil's tables) end the process or are broken if one of their small
// allocations fails. When operator new finds no memory, the reserve is freed and the allocation is tried
// again, so that what is in progress can end. With tcmalloc, so does malloc, which LibTorch's tensors and
// oneDNN's buffers come from. Until the reserve could be set aside anew, no request is admitted.
#pragma once

#include <cstddef>

namespace saccade::server {

// Far more than the small allocations of the requests that are computed at one time.
inline constexpr size_t kMemoryReserveBytes = size_t{32} << 20;

// Sets the reserve aside, and has operator new and tcmalloc's malloc use it from now on. Call it once, when
// the process starts.
void HoldMemoryReserve();

// Returns whether there is a reserve, after setting it aside anew if it was used; true if HoldMemoryReserve()
// was not called. Takes a lock only after the reserve was used. Thread-safe.
bool RestoreMemoryReserve();

}  // namespace saccade::server
