// Keeps calls and their answers: copies those that are chosen, and writes them on a thread of its own.
//
// A bounded queue separates the calls from that thread. Add() never waits: calls for which the queue has no
// room are dropped and counted, as are those that the file system does not take.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/capture/capture_folder.h"
#include "server/capture/capture_settings.h"
#include "server/capture/captured_call.h"
#include "server/capture/event_sink.h"
#include "server/capture/fault_room.h"
#include "server/core/byte_pieces.h"
#include "server/core/clock.h"

namespace saccade::server {

enum class CaptureFate { kWritten, kQueueFull, kWriteFailed, kTooLarge, kTooManyFaults };

// INVALID_ARGUMENT names the member that is out of its bounds.
absl::Status CheckChoice(const CaptureChoice& choice);

// Thread-safe.
class Capture {
 public:
  struct Hooks {
    // Counts calls, and the bytes that were written. Called on any thread; must not block.
    std::function<void(CaptureFate fate, int64_t bytes)> count = nullptr;
    // Reports why calls are lost, at most once a minute, and how many when the capture stops. Called on the
    // writer's thread.
    std::function<void(const std::string& why)> warn = nullptr;
    // Null if there is no sink. Must outlive the capture.
    EventSink* sink = nullptr;
  };

  // Errors of CaptureFolder::Open(); RESOURCE_EXHAUSTED if the system has no thread left. `clock` must
  // outlive the capture.
  static absl::StatusOr<std::unique_ptr<Capture>> Create(const CaptureOptions& options, Hooks hooks,
                                                         Clock* clock);
  // Calls Stop() with a duration of zero if it was not called.
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  const CaptureOptions& options() const { return options_; }
  // What Change() set last, or the options say.
  CaptureChoice choice() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Errors of CheckChoice().
  absl::Status Change(CaptureChoice choice) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Time Now() const { return clock_->Now(); }

  // Cheap: the only cost of calls while capturing is switched off.
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  // Whether to Add() a call that ended with `status`; decided by chance if the rate is below 1.
  bool Wants(absl::string_view model, const absl::Status& status) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Copies the bodies into `call` and queues it.
  void Add(CapturedCall call, absl::Span<const BytePieces> request, absl::Span<const BytePieces> answer)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Bytes of all segments.
  int64_t folder_bytes() const { return folder_bytes_.load(std::memory_order_relaxed); }

  // Writes the queued calls for at most `max`, and joins the thread. Calls added afterwards are dropped.
  void Stop(absl::Duration max) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Capture(const CaptureOptions& options, Hooks hooks, std::unique_ptr<CaptureFolder> folder, Clock* clock);
  bool Reserve(int64_t bytes);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Keep(CapturedCall call);
  CaptureFate Write(const CapturedCall& call, int64_t* bytes);
  // How much of the call is written; nullopt for nothing.
  std::optional<CapturedPixels> PixelsOf(const CapturedCall& call);
  void Lose(const std::string& why);
  bool IsDue() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !queue_.empty() || is_stopping(); }
  bool is_stopping() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stop_at_ != absl::InfiniteFuture(); }

  const CaptureOptions options_;
  const Hooks hooks_;
  // Null if calls are only sent to the sink. Used by the writer's thread only, like those up to fault_room_.
  const std::unique_ptr<CaptureFolder> folder_;
  Clock* const clock_;
  absl::Time last_warning_ = absl::InfinitePast();
  // Calls are dropped until then, because the file system did not take the last one.
  absl::Time write_again_ = absl::InfinitePast();
  FaultRoom fault_room_;

  std::atomic<bool> enabled_;
  // Memory of the calls that are queued, copied or written.
  std::atomic<int64_t> held_bytes_{0};
  std::atomic<int64_t> folder_bytes_{0};

  mutable absl::Mutex mutex_;
  // It may name thousands of models, so it is copied and freed outside the lock.
  std::shared_ptr<const CaptureChoice> choice_ ABSL_GUARDED_BY(mutex_);
  std::deque<CapturedCall> queue_ ABSL_GUARDED_BY(mutex_);
  // The deadline of Stop(); InfiniteFuture() until it is called.
  absl::Time stop_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::thread thread_;
};

}  // namespace saccade::server
