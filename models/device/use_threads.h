// Sets the number of cores for forward passes of a thread.
#pragma once

namespace saccade::models {

// Affects only the calling thread; calls from other threads, before or after, do not change it.
void UseThreads(int threads);

}  // namespace saccade::models
