// Lets OpenCV allocate decoded pictures in the memory that a worker shares with the daemon, so that nobody
// copies them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace saccade::server {

// Makes pictures of three 8-bit channels that OpenCV allocates from now on lie in [data, data + bytes), one
// behind the other, as long as there is room; other matrices come from the heap. Pictures that were allocated
// before lose their memory. For a process with one thread.
void AllocatePicturesIn(uint8_t* data, size_t bytes);

}  // namespace saccade::server
