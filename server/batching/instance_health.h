// Whether an instance is in service, judged by how its passes ended.
#pragma once

#include <algorithm>
#include <utility>

#include "server/batching/nanos.h"

namespace saccade::server {

// A pass that fails may have had bad input. It is the instance's failure only if another instance computed
// the same items afterwards. Not thread-safe.
class InstanceHealth {
 public:
  // Number of failures, without a success in between, after which the instance is set aside.
  static constexpr int kMaxFailures = 3;
  // How long it is set aside before its first probe. Each failed probe doubles the time.
  static constexpr Nanos kMinPause = kSecond;
  static constexpr Nanos kMaxPause = 60 * kSecond;

  bool aside() const { return aside_; }

  // A pass computed at least one item. Returns true if the instance was set aside and is in service again.
  bool Succeeded(NanoTime now) {
    failures_ = 0;
    last_success_ = now;
    pause_ = kMinPause;
    return std::exchange(aside_, false);
  }

  // Another instance computed the items of the pass that failed here at `failed`. Returns true if the
  // instance should be set aside.
  bool Failed(NanoTime failed) {
    if (aside_ || failed < last_success_) return false;
    return ++failures_ >= kMaxFailures;
  }

  void SetAside() { aside_ = true; }

  // Returns the time until the next probe. REQUIRES: aside().
  Nanos NextPause() { return std::exchange(pause_, std::min(kMaxPause, 2 * pause_)); }

 private:
  bool aside_ = false;
  int failures_ = 0;
  Nanos pause_ = kMinPause;
  NanoTime last_success_;
};

}  // namespace saccade::server
