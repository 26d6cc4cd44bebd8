// How many cores the passes of a thread take.
#pragma once

namespace saccade::models {

// Of the calling thread alone, whatever other threads ask for before and after.
void UseThreads(int threads);

}  // namespace saccade::models
