// Threads that compute only while others leave a core idle.
#pragma once

#include <sched.h>
#include <sys/resource.h>

namespace saccade::server {

// Lets this thread, and the threads that it starts later, run only while no other thread wants their core.
// Cannot be undone.
inline void RunOnlyWhenIdle() {
  const sched_param none = {};
  if (sched_setscheduler(0, SCHED_IDLE, &none) == 0) return;
  // Where a filter of system calls forbids that, the lowest ordinary priority. On Linux, of this thread
  // alone.
  constexpr int kLowest = 19;
  setpriority(PRIO_PROCESS, 0, kLowest);
}

}  // namespace saccade::server
