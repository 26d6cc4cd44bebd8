// Sends captured calls to an HTTP address on a thread of its own.
//
// A bounded queue separates it from the thread that writes them to files, so that a sink that is slow or down
// delays nothing. Calls for which the queue has no room, and events that the sink does not take, are dropped
// and counted.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/capture/capture_settings.h"
#include "server/capture/captured_call.h"
#include "server/capture/cloud_event.h"
#include "server/core/clock.h"

namespace saccade::server {

enum class EventFate { kSent, kQueueFull, kFailed };

// Thread-safe.
class EventSink {
 public:
  struct Hooks {
    // Sends one event. Blocks until that is done, or until `given_up` returns true.
    std::function<absl::Status(const CloudEvent& event, const std::function<bool()>& given_up)> send =
        nullptr;
    // Counts events. Called on any thread; must not block.
    std::function<void(EventFate fate, int64_t events)> count = nullptr;
    // Reports why events are lost, at most once a minute. Called on the sink's thread.
    std::function<void(const std::string& why)> warn = nullptr;
  };

  // Throws std::system_error if the system has no thread left. `clock` must outlive the sink.
  EventSink(const CaptureOptions& options, Hooks hooks, Clock* clock);
  // Calls Stop() with a duration of zero if it was not called.
  ~EventSink();
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;

  void Push(CapturedCall call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends the queued calls for at most `max`, and joins the thread.
  void Stop(absl::Duration max) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Send(CapturedCall call) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsDue() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !queue_.empty() || is_stopping(); }
  bool is_stopping() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stop_at_ != absl::InfiniteFuture(); }
  bool given_up() ABSL_LOCKS_EXCLUDED(mutex_);

  const CaptureOptions options_;
  const Hooks hooks_;
  Clock* const clock_;
  // Used by the sink's thread only.
  absl::Time last_warning_ = absl::InfinitePast();
  // Failures since the last event that was taken.
  int failures_ = 0;

  absl::Mutex mutex_;
  std::deque<CapturedCall> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The deadline of Stop(); InfiniteFuture() until it is called.
  absl::Time stop_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::thread thread_;
};

}  // namespace saccade::server
