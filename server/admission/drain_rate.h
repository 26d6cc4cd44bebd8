// How fast what is in flight comes to its end, so that the refused can be told when to come again.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace saccade::server {

// Requests that ended a second, over the last seconds in which there were any: an idle server is not a slow
// one. Not thread-safe.
class DrainRate {
 public:
  // To be called before anything begins or ends; `busy`: something was in flight until `now`.
  void Advance(absl::Time now, bool busy);

  // A request ended, whatever became of it.
  void Ended() { ended_ += 1; }

  // How long so many take to end, as far as is known: between kLeast and kMost.
  absl::Duration TimeFor(int64_t requests) const;

  static constexpr absl::Duration kLeast = absl::Milliseconds(10);
  static constexpr absl::Duration kMost = absl::Seconds(30);
  // While nothing has ended yet.
  static constexpr absl::Duration kUnknown = absl::Seconds(1);

 private:
  absl::Time last_ = absl::InfinitePast();
  // Both forget with the same time constant: what ended, and the seconds of work in which it did.
  double ended_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace saccade::server
