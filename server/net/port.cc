#include "server/net/port.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/net/address.h"
#include "server/net/connection.h"
#include "server/net/connection_group.h"
#include "server/net/listener.h"
#include "server/net/timer.h"

namespace saccade::server {
namespace {

// Connections accepted in one round, so that the first loop's own connections are not kept waiting.
constexpr int kMaxAccepts = 64;
// The time without accepting after the process ran out of descriptors.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

// Runs `action` on the loop's thread and waits until it is done.
void RunOn(EventLoop* loop, absl::FunctionRef<void()> action) {
  absl::Notification done;
  loop->Post([&] {
    const absl::Cleanup notify = [&] { done.Notify(); };
    action();
  });
  done.WaitForNotification();
}

}  // namespace

// Accepts on the first loop.
class Port::Impl final : private Watcher {
 public:
  Impl(PortOptions options, Listener listener)
      : options_(std::make_shared<const PortOptions>(std::move(options))), listener_(std::move(listener)) {
    for (EventLoop* const loop : options_->loops) {
      groups_.push_back(std::make_shared<ConnectionGroup>(loop, options_));
      if (options_->limits != nullptr) options_->limits->AddGroup(groups_.back());
    }
  }
  ~Impl() override { Close(); }

  absl::Status Start();
  int port() const { return port_; }
  size_t connections() const;
  size_t open_requests() const;
  void Drain(absl::Duration grace);
  void Close() {
    std::call_once(closed_, [this] { CloseOnce(); });
  }

 private:
  // A socket for which a place is sought.
  struct Seeker {
    ClientSocket socket;
    // Where to look, from back to front.
    std::vector<std::shared_ptr<ConnectionGroup>> groups;
    // Whether it takes the place of a busy connection.
    bool takes_busy;
    // Counts in `seekers_`, for Close() to wait.
    std::shared_ptr<void> counted;
  };

  void OnEvents(uint32_t events) override;
  void Admit(ClientSocket socket);
  // Hands a socket that holds a place to a group.
  void Serve(ClientSocket socket);
  // Gives a socket the place of an idle connection; first of this port, then of all that share the limits.
  // Then that of a busy one of this port, if PortOptions::replaces_busy says so.
  void BeginToMakeRoom(ClientSocket socket);
  void MakeRoom(Seeker seeker);
  void MakeRoomIn(ConnectionGroup& group, Seeker seeker);
  void PauseAccepting();
  void CloseOnce();
  void Count(Refusal refusal) const {
    if (options_->refusals != nullptr) options_->refusals->Count(refusal);
  }
  EventLoop* accepting_loop() const { return options_->loops.front(); }

  const std::shared_ptr<const PortOptions> options_;
  std::optional<Listener> listener_;
  const int port_ = listener_->port();
  std::vector<std::shared_ptr<ConnectionGroup>> groups_;
  // Accepting loop's thread only.
  std::optional<Timer> resume_;

  absl::Mutex mutex_;
  int seekers_ ABSL_GUARDED_BY(mutex_) = 0;
  std::once_flag closed_;
};

absl::Status Port::Impl::Start() {
  bool watched = false;
  RunOn(accepting_loop(), [&] {
    resume_.emplace(&accepting_loop()->timers(),
                    [this] { accepting_loop()->Change(listener_->fd(), EPOLLIN, this); });
    watched = accepting_loop()->Watch(listener_->fd(), EPOLLIN, this);
  });
  if (watched) return absl::OkStatus();
  return absl::ResourceExhaustedError("cannot listen: the system has no memory left for epoll");
}

size_t Port::Impl::connections() const {
  size_t sum = 0;
  for (const auto& group : groups_) sum += group->size();
  return sum;
}

size_t Port::Impl::open_requests() const {
  size_t sum = 0;
  for (const auto& group : groups_) {
    RunOn(&group->loop(), [&] { sum += group->open_requests(); });
  }
  return sum;
}

void Port::Impl::Drain(absl::Duration grace) {
  for (const auto& group : groups_) {
    group->loop().Post([group = group.get(), grace] { group->Drain(grace); });
  }
}

void Port::Impl::OnEvents(uint32_t /*events*/) {
  for (int i = 0; i < kMaxAccepts; ++i) {
    sockaddr_storage address{};
    const int fd = listener_->Accept(&address);
    if (fd >= 0) {
      Admit(ClientSocket(fd, PeerOf(address, options_->tls != nullptr)));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return PauseAccepting();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    }
    // Other errors concern a connection that broke before it was accepted.
  }
}

void Port::Impl::Admit(ClientSocket socket) {
  if (options_->tls && options_->limits != nullptr) {
    const Peer& peer = socket.peer();
    const auto refusal =
        options_->limits->BeginHandshake(peer.address, peer.is_loopback, accepting_loop()->Now());
    if (refusal) return Count(*refusal);
  }
  const auto refusal = socket.TakePlace(options_->limits);
  if (refusal == Refusal::kConnections) return BeginToMakeRoom(std::move(socket));
  if (refusal) return Count(*refusal);
  Serve(std::move(socket));
}

void Port::Impl::Serve(ClientSocket socket) {
  ConnectionGroup* const group =
      std::min_element(groups_.begin(), groups_.end(), [](const auto& a, const auto& b) {
        return a->size() < b->size();
      })->get();
  group->Announce();
  absl::Cleanup retract = [group] { group->Retract(); };
  group->loop().Post([group, socket = std::move(socket)]() mutable { group->Add(std::move(socket)); });
  std::move(retract).Cancel();
}

void Port::Impl::BeginToMakeRoom(ClientSocket socket) {
  auto groups = options_->limits->groups();
  std::stable_partition(groups.begin(), groups.end(), [this](const auto& group) {
    return std::find(groups_.begin(), groups_.end(), group) == groups_.end();
  });
  {
    absl::MutexLock lock(&mutex_);
    ++seekers_;
  }
  const std::shared_ptr<void> counted(nullptr, [this](void*) {
    absl::MutexLock lock(&mutex_);
    --seekers_;
  });
  MakeRoom({std::move(socket), std::move(groups), /*takes_busy=*/false, counted});
}

void Port::Impl::MakeRoom(Seeker seeker) {
  if (seeker.groups.empty() && options_->replaces_busy && !std::exchange(seeker.takes_busy, true))
    seeker.groups = groups_;
  if (seeker.groups.empty()) return Count(Refusal::kConnections);
  const std::shared_ptr<ConnectionGroup> group = std::move(seeker.groups.back());
  seeker.groups.pop_back();
  group->loop().Post(
      [this, group, seeker = std::move(seeker)]() mutable { MakeRoomIn(*group, std::move(seeker)); });
}

void Port::Impl::MakeRoomIn(ConnectionGroup& group, Seeker seeker) {
  Connection* const closed =
      seeker.takes_busy ? group.FindCrowded(seeker.socket.peer().address) : group.FindIdle();
  if (closed == nullptr) return MakeRoom(std::move(seeker));
  if (const auto refusal = seeker.socket.TakePlaceOf(closed->socket())) return Count(*refusal);
  closed->Evict();
  Serve(std::move(seeker.socket));
}

void Port::Impl::PauseAccepting() {
  // In this order accepting goes on if there is no memory for the timer.
  resume_->Set(accepting_loop()->Now() + kAcceptPause);
  accepting_loop()->Change(listener_->fd(), 0, this);
}

void Port::Impl::CloseOnce() {
  if (options_->limits != nullptr) {
    for (const auto& group : groups_) options_->limits->RemoveGroup(group);
  }
  RunOn(accepting_loop(), [this] {
    resume_.reset();
    accepting_loop()->Unwatch(listener_->fd(), this);
    listener_.reset();
  });
  {
    // Sockets that were accepted already are with their groups then, or on their way to them.
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(+[](int* seekers) { return *seekers == 0; }, &seekers_));
  }
  for (const auto& group : groups_) {
    absl::Notification closed;
    group->loop().Post([&] { group->Close([&] { closed.Notify(); }); });
    closed.WaitForNotification();
  }
}

absl::StatusOr<std::unique_ptr<Port>> Port::Open(PortOptions options) {
  auto listener = Listener::Open(options.host, options.port, options.port_flag);
  if (!listener.ok()) return listener.status();
  auto impl = std::make_unique<Impl>(std::move(options), *std::move(listener));
  if (absl::Status started = impl->Start(); !started.ok()) return started;
  return std::unique_ptr<Port>(new Port(std::move(impl)));
}

Port::Port(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Port::~Port() = default;
int Port::port() const { return impl_->port(); }
size_t Port::connections() const { return impl_->connections(); }
size_t Port::open_requests() const { return impl_->open_requests(); }
void Port::Drain(absl::Duration grace) { impl_->Drain(grace); }
void Port::Close() { impl_->Close(); }

}  // namespace saccade::server
