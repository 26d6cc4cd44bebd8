// Threads that compute only while others leave a core idle.
#pragma once

#include <sched.h>
#include <sys/resource.h>

namespace saccade::server {

// Lets every other thread compute before this one. On Linux, it changes this thread alone.
inline void RunAtLowestPriority() {
  constexpr int kLowest = 19;
  // It only fails for a priority that is better than before.
  setpriority(PRIO_PROCESS, 0, kLowest);
}

// Lets this thread, and the threads that it starts later, run only while no other thread wants their core.
// Cannot be undone.
inline void RunOnlyWhenIdle() {
  const sched_param none = {};
  // Where a filter of system calls forbids it, this thread alone gets the lowest ordinary priority.
  if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) RunAtLowestPriority();
}

}  // namespace saccade::server
