#include "server/net/event_loop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "server/core/clock.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// Events taken with one system call.
constexpr size_t kMaxEvents = 256;
// Tasks of one round, for which memory is kept.
constexpr size_t kUsualTasks = 256;

// Runs `action`; an exception ends it and not the thread.
void RunGuarded(absl::FunctionRef<void()> action) {
  try {
    action();
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "a task of an event loop failed", {{"error", absl::string_view(error.what())}});
  } catch (...) {
    Log(LogLevel::kError, "a task of an event loop failed");
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create(const std::string& name) {
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) return absl::ResourceExhaustedError("cannot make an event loop: no descriptor is left");
  const int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) {
    close(epoll_fd);
    return absl::ResourceExhaustedError("cannot make an event loop: no descriptor is left");
  }
  std::unique_ptr<EventLoop> loop(new EventLoop(epoll_fd, wake_fd));
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) != 0) {
    return absl::ResourceExhaustedError("cannot make an event loop: the system has no memory left");
  }
  try {
    loop->thread_ = std::thread([raw = loop.get(), name] {
      pthread_setname_np(pthread_self(), name.c_str());
      raw->Run();
    });
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError("cannot make an event loop: no thread is left");
  }
  return loop;
}

EventLoop::EventLoop(int epoll_fd, int wake_fd)
    : epoll_fd_(epoll_fd), wake_fd_(wake_fd), now_(Clock::Real()->Now()) {
  running_.reserve(kUsualTasks);
  posted_.reserve(kUsualTasks);
}

EventLoop::~EventLoop() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  // This wakes the thread if it sleeps.
  Post([] {});
  if (thread_.joinable()) thread_.join();
  close(wake_fd_);
  close(epoll_fd_);
}

void EventLoop::Post(Task task) {
  {
    absl::MutexLock lock(&mutex_);
    posted_.push_back(std::move(task));
    if (!std::exchange(sleeping_, false)) return;
  }
  const uint64_t one = 1;
  // It fails only if the counter is full, and then the thread is awake.
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof(one));
}

bool EventLoop::Watch(int fd, uint32_t events, Watcher* watcher) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = watcher;
  return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void EventLoop::Change(int fd, uint32_t events, Watcher* watcher) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = watcher;
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::Unwatch(int fd, Watcher* watcher) {
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  for (epoll_event& event : events_) {
    if (event.data.ptr == watcher) event.data.ptr = nullptr;
  }
}

void EventLoop::AtEndOfRound(Watcher* watcher) {
  (last_at_end_ == nullptr ? first_at_end_ : last_at_end_->next_at_end_) = watcher;
  last_at_end_ = watcher;
}

void EventLoop::Run() {
  thread_id_.store(std::this_thread::get_id());
  while (RunRound()) {
  }
}

bool EventLoop::RunRound() {
  bool sleeps = false;
  {
    absl::MutexLock lock(&mutex_);
    sleeps = posted_.empty() && first_at_end_ == nullptr;
    if (ending_ && sleeps) return false;
    sleeping_ = sleeps;
  }
  std::array<epoll_event, kMaxEvents> events;
  const int count = epoll_wait(epoll_fd_, events.data(), kMaxEvents, sleeps ? MillisecondsToWait() : 0);
  {
    absl::MutexLock lock(&mutex_);
    sleeping_ = false;
  }
  now_ = Clock::Real()->Now();
  events_ = absl::MakeSpan(events.data(), static_cast<size_t>(std::max(count, 0)));
  while (!events_.empty()) {
    const epoll_event event = events_.front();
    events_.remove_prefix(1);
    Dispatch(event.events, static_cast<Watcher*>(event.data.ptr));
  }
  RunPosted();
  RunGuarded([this] { timers().RunDue(now_); });
  RunAtEnd();
  return true;
}

void EventLoop::Dispatch(uint32_t events, Watcher* watcher) {
  // The eventfd has no watcher, and Unwatch() removes others.
  if (watcher == nullptr) return;
  RunGuarded([&] { watcher->OnEvents(events); });
}

void EventLoop::RunPosted() {
  {
    absl::MutexLock lock(&mutex_);
    running_.swap(posted_);
  }
  for (Task& task : running_) {
    RunGuarded([&] { std::move(task)(); });
    // What it holds is released before the next one runs.
    task = nullptr;
  }
  running_.clear();
}

void EventLoop::RunAtEnd() {
  // Watchers that are passed meanwhile have their turn in the next round.
  Watcher* next = std::exchange(first_at_end_, nullptr);
  last_at_end_ = nullptr;
  while (next != nullptr) {
    // The function may destroy its watcher.
    Watcher* const watcher = std::exchange(next, next->next_at_end_);
    watcher->next_at_end_ = nullptr;
    RunGuarded([&] { watcher->OnEndOfRound(); });
  }
}

int EventLoop::MillisecondsToWait() {
  const absl::Time next = timers().Next();
  if (next == absl::InfiniteFuture()) return -1;
  const absl::Duration left = next - Clock::Real()->Now();
  if (left <= absl::ZeroDuration()) return 0;
  // Rounded up, so that the timer is due when the wait ends.
  return static_cast<int>(absl::ToInt64Milliseconds(std::min(left, absl::Minutes(1)))) + 1;
}

}  // namespace saccade::server
