// Takes spans to a collector, on a thread of its own.
//
// A bounded queue is between the calls and that thread: Push never waits, and drops what finds no room. Spans
// go in batches, when there are enough of them or the oldest has waited long enough. A collector that is down
// or asks to wait is tried again, later each time, until the batch's time is over; meanwhile the queue fills.
// Everything that is dropped is counted.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"
#include "server/tracing/span.h"

namespace saccade::server {

// What became of an attempt to send a batch.
struct SendOutcome {
  enum class Kind { kSent, kTryAgain, kRefused };

  Kind kind = Kind::kSent;
  // If the collector said so.
  std::optional<absl::Duration> wait = std::nullopt;
  // Of what was sent: spans that the collector did not take.
  int64_t rejected = 0;
  // Why not, or why not all.
  std::string why = {};
};

enum class SpanFate { kExported, kQueueFull, kFailed, kRejected };

class SpanExporter {
 public:
  struct Options {
    // Spans that may wait.
    int64_t most_queued = 2048;
    // Spans of one batch; not more than may wait.
    int64_t most_in_batch = 512;
    // How long a span waits for others.
    absl::Duration delay = absl::Seconds(5);
    // How long a batch is tried.
    absl::Duration most_trying = absl::Seconds(30);
    // Sends one batch, and blocks until it is done, or so much time is over, or `given_up` says so.
    std::function<SendOutcome(const std::vector<Span>& spans, absl::Duration most,
                              const std::function<bool()>& given_up)>
        send = nullptr;
    // Called from any thread; must not block.
    std::function<void(SpanFate, int64_t spans)> count = nullptr;
    // Told now and then why spans are lost; from the exporter's thread.
    std::function<void(const std::string& why)> warn = nullptr;
  };

  // `clock` must outlive it. REQUIRES: 1 <= most_in_batch <= most_queued.
  SpanExporter(Options options, Clock* clock);
  // Stops at once if Stop was not called.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Thread-safe. They stay together: if there is no room for all, none is kept.
  void Push(std::vector<Span> spans) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends what waits, each batch once, for no longer than `most`, and ends the thread. What comes later is
  // dropped.
  void Stop(absl::Duration most) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run();
  void Export(const std::vector<Span>& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing if it is not worth waiting any more.
  std::optional<absl::Duration> WaitAfter(const SendOutcome& outcome, int attempt, absl::Time until);
  // The oldest that go together, as they came.
  std::vector<std::vector<Span>> Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDue() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool is_stopping() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stop_at_ != absl::InfiniteFuture(); }
  absl::Time stop_at() ABSL_LOCKS_EXCLUDED(mutex_);
  void Lose(int64_t spans, SpanFate fate, const std::string& why);

  const Options options_;
  Clock* const clock_;
  // The thread's alone.
  absl::Time last_warning_ = absl::InfinitePast();

  absl::Mutex mutex_;
  // As they came: a call's spans change hands by their vector, so that nobody waits while many are moved.
  std::deque<std::vector<Span>> queue_ ABSL_GUARDED_BY(mutex_);
  // In all of them.
  int64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  // When everything is to have ended; the infinite future until it is known.
  absl::Time stop_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::thread thread_;
};

}  // namespace saccade::server
