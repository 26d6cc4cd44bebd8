// Bounds the number of connections, in all and for each client address, and how often TLS is agreed on.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/net/handshake_rates.h"
#include "server/net/refusal.h"

namespace saccade::server {

class ConnectionGroup;

// An IPv6 address counts as its first 64 bits, because one client usually has all of those.
std::string LimitKeyOf(absl::string_view address);

// Thread-safe.
class ConnectionLimits {
 public:
  struct Options {
    size_t max_connections = 16384;
    // Loopback addresses are not bound by it.
    size_t max_per_address = 4096;
    // So many slots of max_connections are kept for connections from loopback addresses, and for those that
    // replace an idle one: local health probes must get through.
    size_t kept_for_probes = 16;
    // One address may agree on TLS so often, averaged, and max_per_address times at once, so that all its
    // clients may reconnect. Loopback addresses are not bound.
    double max_handshakes_per_second = 1000;
  };

  explicit ConnectionLimits(const Options& options)
      : options_(options),
        handshakes_(options.max_handshakes_per_second, static_cast<double>(options.max_per_address)) {}

  // Counts a TLS handshake, or says why it may not begin. Times must not decrease.
  std::optional<Refusal> BeginHandshake(absl::string_view address, bool is_loopback, absl::Time now);

  // Takes a slot for a connection, or says why not. kConnections: an idle connection may be closed to make
  // room.
  std::optional<Refusal> Add(absl::string_view address, bool is_loopback);
  // Gives the slot of the connection from `closed`, which is then closed, to a new one, or says why not.
  std::optional<Refusal> Replace(absl::string_view closed, absl::string_view address, bool is_loopback);
  void Remove(absl::string_view address);
  size_t open() const;
  // Open connections of an address.
  size_t open_of(absl::string_view address) const;

  // The connections that hold the slots, wherever room may be made. Used by ports.
  void AddGroup(std::shared_ptr<ConnectionGroup> group);
  void RemoveGroup(const std::shared_ptr<ConnectionGroup>& group);
  std::vector<std::shared_ptr<ConnectionGroup>> groups() const;

 private:
  bool IsFull(const std::string& key, bool is_loopback) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveOne(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  // std::map, because Abseil's tables are broken after an allocation that fails while they grow.
  std::map<std::string, size_t> by_address_ ABSL_GUARDED_BY(mutex_);
  HandshakeRates handshakes_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ConnectionGroup>> groups_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
