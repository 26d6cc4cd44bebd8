#include "server/net/connection_limits.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {

std::string LimitKeyOf(absl::string_view address) {
  in6_addr bits{};
  if (inet_pton(AF_INET6, std::string(address).c_str(), &bits) != 1) return std::string(address);
  std::fill(std::begin(bits.s6_addr) + 8, std::end(bits.s6_addr), uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, &bits, text.data(), text.size());
  return absl::StrCat(text.data(), "/64");
}

std::optional<Refusal> ConnectionLimits::BeginHandshake(absl::string_view address, bool is_loopback,
                                                        absl::Time now) {
  if (is_loopback) return std::nullopt;
  const std::string key = LimitKeyOf(address);
  absl::MutexLock lock(&mutex_);
  if (handshakes_.Take(key, now)) return std::nullopt;
  return Refusal::kHandshakes;
}

std::optional<Refusal> ConnectionLimits::Add(absl::string_view address, bool is_loopback) {
  std::string key = LimitKeyOf(address);
  absl::MutexLock lock(&mutex_);
  if (IsFull(key, is_loopback)) return Refusal::kConnectionsOfAddress;
  const size_t kept = is_loopback ? 0 : std::min(options_.kept_for_probes, options_.max_connections);
  if (open_ >= options_.max_connections - kept) return Refusal::kConnections;
  ++by_address_[std::move(key)];
  ++open_;
  return std::nullopt;
}

std::optional<Refusal> ConnectionLimits::Replace(absl::string_view closed, absl::string_view address,
                                                 bool is_loopback) {
  std::string key = LimitKeyOf(address);
  const std::string closed_key = LimitKeyOf(closed);
  absl::MutexLock lock(&mutex_);
  if (IsFull(key, is_loopback)) return Refusal::kConnectionsOfAddress;
  ++by_address_[std::move(key)];
  RemoveOne(closed_key);
  return std::nullopt;
}

void ConnectionLimits::Remove(absl::string_view address) {
  const std::string key = LimitKeyOf(address);
  absl::MutexLock lock(&mutex_);
  RemoveOne(key);
  --open_;
}

size_t ConnectionLimits::open() const {
  absl::MutexLock lock(&mutex_);
  return open_;
}

size_t ConnectionLimits::open_of(absl::string_view address) const {
  const std::string key = LimitKeyOf(address);
  absl::MutexLock lock(&mutex_);
  const auto found = by_address_.find(key);
  return found == by_address_.end() ? 0 : found->second;
}

void ConnectionLimits::AddGroup(std::shared_ptr<ConnectionGroup> group) {
  absl::MutexLock lock(&mutex_);
  groups_.push_back(std::move(group));
}

void ConnectionLimits::RemoveGroup(const std::shared_ptr<ConnectionGroup>& group) {
  absl::MutexLock lock(&mutex_);
  groups_.erase(std::remove(groups_.begin(), groups_.end(), group), groups_.end());
}

std::vector<std::shared_ptr<ConnectionGroup>> ConnectionLimits::groups() const {
  absl::MutexLock lock(&mutex_);
  return groups_;
}

bool ConnectionLimits::IsFull(const std::string& key, bool is_loopback) const {
  if (is_loopback) return false;
  const auto found = by_address_.find(key);
  return found != by_address_.end() && found->second >= options_.max_per_address;
}

void ConnectionLimits::RemoveOne(const std::string& key) {
  const auto found = by_address_.find(key);
  if (--found->second == 0) by_address_.erase(found);
}

}  // namespace saccade::server
