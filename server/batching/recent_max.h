// Tracks the largest value of the recent past.
#pragma once

#include <algorithm>
#include <cstdint>

#include "server/batching/nanos.h"

namespace saccade::server {

// Remembers each value for one to two windows. Not thread-safe.
class RecentMax {
 public:
  void Note(int64_t value, NanoTime now, Nanos window) {
    if (now - began_ >= window) {
      before_ = now - began_ < 2 * window ? newest_ : 0;
      newest_ = 0;
      began_ = now;
    }
    newest_ = std::max(newest_, value);
  }

  // The largest value noted in the current window and the one before; 0 if there was none.
  int64_t At(NanoTime now, Nanos window) const {
    const Nanos age = now - began_;
    if (age >= 2 * window) return 0;
    return age >= window ? newest_ : std::max(before_, newest_);
  }

 private:
  int64_t newest_ = 0;
  // The largest value of the window before the current one.
  int64_t before_ = 0;
  // Begin of the current window.
  NanoTime began_;
};

}  // namespace saccade::server
