// Keeps the threads of a pass from sharing a core while other cores are idle.
#pragma once

#include <sched.h>

#include <vector>

namespace saccade::models {

// While it exists, no thread of the calling one's team runs on the cores on which the others were when it was
// made; threads that shared a core are moved apart first. Does nothing if there are fewer cores than threads.
//
// Linux prefers to wake a thread on a core that runs, and a virtual machine's idle cores look as if they did
// not: the threads of a loop are woken on the core of the one that starts it, and share it until the next
// tick, which is longer than the pass of a small network.
//
// Used by one thread, which may not change its number of threads meanwhile. Takes three parallel loops
// without work, some microseconds.
class SeparateCores {
 public:
  SeparateCores();
  ~SeparateCores();
  SeparateCores(const SeparateCores&) = delete;
  SeparateCores& operator=(const SeparateCores&) = delete;

 private:
  bool apart_ = false;
  cpu_set_t allowed_{};
};

// For each thread on `cores`, the core that it should be on: its own if no thread before it has that one,
// otherwise an allowed one without a thread, or its own if there is none.
std::vector<int> AssignCores(const std::vector<int>& cores, const cpu_set_t& allowed);

}  // namespace saccade::models
