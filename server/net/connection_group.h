// The connections of one port on one event loop.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/net/client_socket.h"
#include "server/net/event_loop.h"
#include "server/net/port.h"

namespace saccade::server {

class Connection;

// Loop's thread only, unless stated otherwise.
class ConnectionGroup {
 public:
  // What a connection's place is worth when room is needed.
  enum class Rank : uint8_t {
    kNew,   // has not made a request yet
    kIdle,  // waits for the next request
    kBusy,  // is not closed to make room
  };
  static constexpr size_t kRanks = 3;

  // Where a connection is listed.
  struct Entry {
    Rank rank = Rank::kNew;
    // Whether it has made a request.
    bool has_served = false;
    absl::Time begun;
    std::list<std::unique_ptr<Connection>>::iterator position;
  };

  // `loop` must outlive the group.
  ConnectionGroup(EventLoop* loop, std::shared_ptr<const PortOptions> options);
  // REQUIRES: no connection is left.
  ~ConnectionGroup();

  // Number of connections, including those that were announced. Thread-safe.
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  // Announces a connection, which Add() follows. Thread-safe.
  void Announce() { size_.fetch_add(1, std::memory_order_relaxed); }
  // Takes an announcement back. REQUIRES: Close() was not called. Thread-safe.
  void Retract() { size_.fetch_sub(1, std::memory_order_relaxed); }
  // Begins to serve an announced connection.
  void Add(ClientSocket socket);

  // The connection to close to make room: the oldest of those that made no request for a moment, else the one
  // that has been idle longest. Null if all are busy,
  // or if the group is closed.
  Connection* FindIdle();
  // The busy connection to close to make room for one from `address`, see PortOptions::replaces_busy. Null if
  // there is none. Takes a time that is linear in the connections.
  Connection* FindCrowded(absl::string_view address);
  size_t open_requests() const;

  void Drain(absl::Duration grace);
  // Aborts all connections and refuses new ones. Calls `done` when none is left.
  void Close(absl::AnyInvocable<void() &&> done);

  // For connections.
  EventLoop& loop() { return *loop_; }
  const PortOptions& options() const { return *options_; }
  // Shared by all connections for what they read.
  absl::Span<char> buffer() { return absl::MakeSpan(buffer_); }
  // How Drain() was called, if it was.
  const std::optional<absl::Duration>& drain_grace() const { return drain_grace_; }
  void SetRank(Connection* connection, Rank rank);
  // Runs a step of a TLS handshake, which may compute for long: up to a bound in each round of the loop, and
  // at least one. If the round's time is used up, does nothing: epoll tells of the connection again in the
  // next.
  void RunHandshake(absl::FunctionRef<void()> step);
  // Destroys the connection.
  void Remove(Connection* connection);

 private:
  using List = std::list<std::unique_ptr<Connection>>;

  List& ListOf(Rank rank) { return lists_[static_cast<size_t>(rank)]; }
  // Counts one connection less.
  void Forget();
  // Connections may change their lists while the result is used, but are not destroyed before the round's
  // end.
  std::vector<Connection*> All() const;

  EventLoop* const loop_;
  const std::shared_ptr<const PortOptions> options_;
  std::atomic<size_t> size_ = 0;
  // By rank; each in the order in which the connections took that rank.
  std::array<List, kRanks> lists_;
  std::vector<char> buffer_;
  std::optional<absl::Duration> drain_grace_;
  bool closing_ = false;
  // The round in which a handshake went on last, and the time of that round's handshakes.
  absl::Time handshake_round_ = absl::InfinitePast();
  absl::Duration handshake_time_;
  absl::AnyInvocable<void() &&> done_;
};

}  // namespace saccade::server
