// Measures processor time, for tests that bound it.
#pragma once

#include <ctime>

namespace saccade::models::testing {

// Returns the processor time, in seconds, that the calling thread takes for `work`.
template <typename Work>
double ThreadSeconds(const Work& work) {
  timespec start{};
  timespec end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  work();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return static_cast<double>(end.tv_sec - start.tv_sec) +
         1e-9 * static_cast<double>(end.tv_nsec - start.tv_nsec);
}

}  // namespace saccade::models::testing
