// The socket of an accepted connection.
#pragma once

#include <optional>

#include "server/net/connection_limits.h"
#include "server/net/peer.h"

namespace saccade::server {

// Owns the descriptor and the connection's place among the limits. May be moved between threads.
class ClientSocket {
 public:
  ClientSocket(int fd, Peer peer);
  ClientSocket(ClientSocket&& other) noexcept;
  ClientSocket& operator=(ClientSocket&&) = delete;
  ~ClientSocket();

  int fd() const { return fd_; }
  const Peer& peer() const { return peer_; }

  // Takes a place, or says why not. `limits` must outlive this object; null: there are no bounds.
  std::optional<Refusal> TakePlace(ConnectionLimits* limits);
  // Takes the place of `other`, which is to be closed, or says why not. REQUIRES: `other` holds one.
  std::optional<Refusal> TakePlaceOf(ClientSocket& other);

 private:
  int fd_;
  Peer peer_;
  // Null if no place is held.
  ConnectionLimits* limits_ = nullptr;
};

}  // namespace saccade::server
