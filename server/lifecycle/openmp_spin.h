// How long OpenMP's threads wait for each other by spinning before they sleep, measured on this machine.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace saccade::server {

// What waiting costs.
struct WaitingCosts {
  // From the call that wakes a sleeping thread until the thread runs.
  absl::Duration wake_up;
  // One round of libgomp's loop that waits.
  absl::Duration round;
};

// Takes about ten milliseconds and a second thread. Returns nullopt if this process may use one core only,
// where no thread waits for another, or if no thread can be made.
std::optional<WaitingCosts> MeasureWaiting();

// The number of rounds that last as long as ten wake-ups. One or two would do if threads waited for nothing
// but to be woken. But they also wait until the longest of their parts is done, and a thread that did sleep
// may be woken on the core of the one that woke it: both then share it for milliseconds. At least what lasts
// 150 microseconds, because parts differ by as much where a wake-up is cheap, and at most what lasts 250,
// because on a busy machine a wake-up looks longer than it is.
int SpinRounds(const WaitingCosts& costs);

// The costs as a text of one line, which passes them over the restart that libgomp needs to see its variable.
std::string ToText(const WaitingCosts& costs);

}  // namespace saccade::server
