#include "server/capture/event_sink.h"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/capture/warnings.h"
#include "server/core/idle_thread.h"

namespace saccade::server {
namespace {

// The wait after an event that was not taken; it doubles with every further one.
constexpr absl::Duration kFirstWait = absl::Milliseconds(250);
constexpr absl::Duration kLongestWait = absl::Seconds(16);

std::string NewId() {
  thread_local std::mt19937_64 generator{std::random_device()()};
  const uint64_t high = generator();
  const uint64_t low = generator();
  // A random UUID, version 4.
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%012x", high >> 32, (high >> 16) & 0xffff, high & 0xfff,
                         0x8000 | ((low >> 48) & 0x3fff), low & 0xffffffffffff);
}

}  // namespace

EventSink::EventSink(const CaptureOptions& options, Hooks hooks, Clock* clock)
    : options_(options), hooks_(std::move(hooks)), clock_(clock), thread_([this] { Run(); }) {}

EventSink::~EventSink() { Stop(absl::ZeroDuration()); }

void EventSink::Push(CapturedCall call) {
  const int64_t events = call.status.ok() ? 2 : 1;
  const int64_t bytes = call.held_bytes();
  {
    const absl::MutexLock lock(&mutex_);
    if (!is_stopping() && queued_bytes_ + bytes <= options_.queue_bytes) {
      queue_.push_back(std::move(call));
      queued_bytes_ += bytes;
      return;
    }
  }
  hooks_.count(EventFate::kQueueFull, events);
}

void EventSink::Stop(absl::Duration max) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!is_stopping()) stop_at_ = clock_->Now() + max;
  }
  if (thread_.joinable()) thread_.join();
}

bool EventSink::given_up() {
  const absl::MutexLock lock(&mutex_);
  return stop_at_ <= clock_->Now();
}

void EventSink::Run() {
  RunAtLowestPriority();
  for (;;) {
    CapturedCall call;
    {
      const absl::MutexLock lock(&mutex_);
      clock_->AwaitUntil(&mutex_, absl::Condition(this, &EventSink::IsDue), absl::InfiniteFuture());
      if (queue_.empty()) return;
      call = std::move(queue_.front());
      queue_.pop_front();
      queued_bytes_ -= call.held_bytes();
    }
    // Whatever a call needs more memory for than there is, the thread goes on with the next one.
    try {
      Send(std::move(call));
    } catch (const std::exception&) {
      hooks_.count(EventFate::kFailed, 1);
    }
  }
}

void EventSink::Send(CapturedCall call) {
  for (const CloudEvent& event : ToCloudEvents(std::move(call), NewId(), options_)) {
    const absl::Status sent = given_up() ? absl::CancelledError("the daemon ends")
                                         : hooks_.send(event, [this] { return given_up(); });
    hooks_.count(sent.ok() ? EventFate::kSent : EventFate::kFailed, 1);
    if (sent.ok()) {
      failures_ = 0;
      continue;
    }
    const absl::Time now = clock_->Now();
    if (now - last_warning_ >= kMinWarningInterval) {
      last_warning_ = now;
      hooks_.warn(std::string(sent.message()));
    }
    // The sink does not take this event, but may well take the next one.
    if (absl::IsInvalidArgument(sent)) continue;
    const absl::Duration wait =
        std::min(kFirstWait * (int64_t{1} << std::min(failures_++, 10)), kLongestWait);
    const absl::MutexLock lock(&mutex_);
    const auto stops = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return is_stopping(); };
    clock_->AwaitUntil(&mutex_, absl::Condition(&stops), now + wait);
  }
}

}  // namespace saccade::server
