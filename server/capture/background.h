// What the threads that write and send captured calls have in common.
#pragma once

#include <sys/resource.h>

#include "absl/time/time.h"

namespace saccade::server {

// Between two warnings of one thread.
inline constexpr absl::Duration kBetweenWarnings = absl::Seconds(60);

// Lets every other thread compute before this one.
inline void GiveWay() {
  constexpr int kLowest = 19;
  // On Linux, of this thread alone. It only fails for a priority that is better than before.
  setpriority(PRIO_PROCESS, 0, kLowest);
}

}  // namespace saccade::server
