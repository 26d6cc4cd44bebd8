#include "server/net/connection_group.h"

#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "server/core/clock.h"
#include "server/net/connection.h"

namespace saccade::server {
namespace {

// What one connection reads at once, so that it does not keep the others waiting.
constexpr size_t kBuffer = size_t{256} << 10;
// Time of a round for handshakes, so that they do not keep established connections waiting. One takes 0.3 ms
// or more, depending on the certificate's key.
constexpr absl::Duration kMaxHandshakeTime = absl::Milliseconds(1);

}  // namespace

ConnectionGroup::ConnectionGroup(EventLoop* loop, std::shared_ptr<const PortOptions> options)
    : loop_(loop), options_(std::move(options)), buffer_(kBuffer) {}

ConnectionGroup::~ConnectionGroup() = default;

void ConnectionGroup::Add(ClientSocket socket) {
  absl::Cleanup forget = [this] { Forget(); };
  if (closing_) return;
  List& list = ListOf(Rank::kNew);
  list.push_back(std::make_unique<Connection>(this, std::move(socket)));
  // The announced connection was counted already, and that count is its own from here. A second one, even for
  // a moment, would make the port prefer other loops.
  std::move(forget).Cancel();
  Connection& added = *list.back();
  added.entry() = {Rank::kNew, false, loop_->Now(), std::prev(list.end())};
  added.Start();
}

Connection* ConnectionGroup::FindIdle() {
  if (closing_) return nullptr;
  const List& fresh = ListOf(Rank::kNew);
  const List& idle = ListOf(Rank::kIdle);
  const bool overdue =
      !fresh.empty() && loop_->Now() - fresh.front()->entry().begun >= options_->first_request_time;
  if (overdue || (idle.empty() && !fresh.empty())) return fresh.front().get();
  return idle.empty() ? nullptr : idle.front().get();
}

Connection* ConnectionGroup::FindCrowded(absl::string_view address) {
  if (closing_) return nullptr;
  const ConnectionLimits& limits = *options_->limits;
  size_t most = limits.open_of(address) + 1;
  Connection* found = nullptr;
  for (const auto& connection : ListOf(Rank::kBusy)) {
    if (connection->is_lost()) continue;
    const size_t open = limits.open_of(connection->peer().address);
    if (open <= most) continue;
    most = open;
    found = connection.get();
  }
  return found;
}

size_t ConnectionGroup::open_requests() const {
  size_t sum = 0;
  for (const List& list : lists_) {
    for (const auto& connection : list) sum += connection->open_requests();
  }
  return sum;
}

void ConnectionGroup::Drain(absl::Duration grace) {
  drain_grace_ = grace;
  for (Connection* const connection : All()) connection->Drain(grace);
}

void ConnectionGroup::Close(absl::AnyInvocable<void() &&> done) {
  closing_ = true;
  done_ = std::move(done);
  Announce();
  for (const List& list : lists_) {
    for (const auto& connection : list) connection->Abort();
  }
  Forget();
}

void ConnectionGroup::Forget() {
  // Nothing of this object is used after `done_`, whose caller may destroy it.
  if (size_.fetch_sub(1, std::memory_order_relaxed) == 1 && closing_) std::exchange(done_, nullptr)();
}

void ConnectionGroup::SetRank(Connection* connection, Rank rank) {
  Entry& entry = connection->entry();
  if (entry.rank == rank) return;
  List& to = ListOf(rank);
  to.splice(to.end(), ListOf(entry.rank), entry.position);
  entry.rank = rank;
}

void ConnectionGroup::RunHandshake(absl::FunctionRef<void()> step) {
  if (std::exchange(handshake_round_, loop_->Now()) != loop_->Now()) handshake_time_ = absl::ZeroDuration();
  if (handshake_time_ >= kMaxHandshakeTime) return;
  const absl::Time begun = Clock::Real()->Now();
  const absl::Cleanup spend = [&] { handshake_time_ += Clock::Real()->Now() - begun; };
  step();
}

void ConnectionGroup::Remove(Connection* connection) {
  ListOf(connection->entry().rank).erase(connection->entry().position);
  Forget();
}

std::vector<Connection*> ConnectionGroup::All() const {
  std::vector<Connection*> all;
  for (const List& list : lists_) {
    for (const auto& connection : list) all.push_back(connection.get());
  }
  return all;
}

}  // namespace saccade::server
