#include "server/net/client_socket.h"

#include <unistd.h>

#include <utility>

namespace saccade::server {

ClientSocket::ClientSocket(int fd, Peer peer) : fd_(fd), peer_(std::move(peer)) {}

ClientSocket::ClientSocket(ClientSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      peer_(std::move(other.peer_)),
      limits_(std::exchange(other.limits_, nullptr)) {}

ClientSocket::~ClientSocket() {
  if (fd_ >= 0) close(fd_);
  if (limits_ != nullptr) limits_->Remove(peer_.address);
}

std::optional<Refusal> ClientSocket::TakePlace(ConnectionLimits* limits) {
  if (limits == nullptr) return std::nullopt;
  const auto refusal = limits->Add(peer_.address, peer_.is_loopback);
  if (!refusal) limits_ = limits;
  return refusal;
}

std::optional<Refusal> ClientSocket::TakePlaceOf(ClientSocket& other) {
  const auto refusal = other.limits_->Replace(other.peer_.address, peer_.address, peer_.is_loopback);
  if (!refusal) limits_ = std::exchange(other.limits_, nullptr);
  return refusal;
}

}  // namespace saccade::server
