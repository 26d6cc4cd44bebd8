// Sets the number of cores for forward passes of a thread.
#pragma once

namespace saccade::models {

// Affects only the calling thread; calls from other threads, before or after, do not change it. Costs next to
// nothing if the thread uses so many already.
void UseThreads(int threads);

// The number of cores for forward passes of this thread.
int UsedThreads();

}  // namespace saccade::models
