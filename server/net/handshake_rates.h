// Bounds how many TLS handshakes the clients of an address may begin.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace saccade::server {

// Not thread-safe. An address is remembered while it may begin fewer handshakes than it may at most, so there
// are never more of them than handshakes in the time between two of one address.
class HandshakeRates {
 public:
  // An address may begin `per_second` handshakes in a second, averaged, and `max_at_once` if it has begun
  // none for long. REQUIRES: both are at least 1.
  HandshakeRates(double per_second, double max_at_once)
      : interval_(absl::Seconds(1 / per_second)), max_ahead_(interval_ * max_at_once) {}

  // Counts a handshake of the address; false, and counts none, if it has begun too many. Times must not
  // decrease. Takes a time that is logarithmic in the addresses, averaged over calls.
  bool Take(const std::string& address, absl::Time now);

  // Addresses that are remembered.
  size_t addresses() const { return free_at_.size(); }

 private:
  void ForgetFree(absl::Time now);

  // The time after which a handshake is forgotten.
  const absl::Duration interval_;
  // How far an address may be ahead of its rate.
  const absl::Duration max_ahead_;
  // When all handshakes of an address will be forgotten.
  std::map<std::string, absl::Time> free_at_;
  // The same, by time. Refers to the keys of free_at_.
  std::set<std::pair<absl::Time, const std::string*>> by_time_;
};

}  // namespace saccade::server
