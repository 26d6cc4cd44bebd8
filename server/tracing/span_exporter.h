// Exports spans to a collector on a thread of its own.
//
// A bounded queue separates the calls from that thread. Push() never waits, and drops spans if the queue is
// full. Spans are sent in batches, when there are enough of them or the oldest has waited long enough. If the
// collector is down or asks to wait, a batch is retried with increasing delays until its time is over;
// meanwhile the queue fills up. All dropped spans are counted.
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

// The result of an attempt to send a batch.
struct SendOutcome {
  enum class Kind { kSent, kTryAgain, kRefused };

  Kind kind = Kind::kSent;
  // The delay that the collector asked for, if any.
  std::optional<absl::Duration> wait = std::nullopt;
  // The number of spans that the collector rejected, if the batch was sent.
  int64_t rejected = 0;
  // Why the batch, or a part of it, was not accepted.
  std::string why = {};
};

enum class SpanFate { kExported, kQueueFull, kFailed, kRejected };

class SpanExporter {
 public:
  struct Options {
    // Maximum number of spans in the queue.
    int64_t max_queued = 2048;
    // Maximum number of spans in a batch, at most max_queued.
    int64_t max_in_batch = 512;
    // The longest time that spans wait for a batch to fill.
    absl::Duration delay = absl::Seconds(5);
    // The longest time that sending a batch is retried.
    absl::Duration max_trying = absl::Seconds(30);
    // Sends one batch. Blocks until that is done, `max` has passed, or `given_up` returns true.
    std::function<SendOutcome(const std::vector<Span>& spans, absl::Duration max,
                              const std::function<bool()>& given_up)>
        send = nullptr;
    // Counts spans. Called on any thread; must not block.
    std::function<void(SpanFate, int64_t spans)> count = nullptr;
    // Reports why spans are lost, at most once a minute. Called on the exporter's thread.
    std::function<void(const std::string& why)> warn = nullptr;
  };

  // `clock` must outlive this object. REQUIRES: 1 <= max_in_batch <= max_queued.
  SpanExporter(Options options, Clock* clock);
  // Calls Stop() with a duration of zero if it was not called.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Thread-safe. If there is not enough room for all of them, all are dropped.
  void Push(std::vector<Span> spans) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends the queued spans, each batch once, for at most `max`, and joins the thread. Spans pushed
  // afterwards are dropped.
  void Stop(absl::Duration max) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run();
  void Export(const std::vector<Span>& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  // How long to wait before the next attempt; nullopt to give up.
  std::optional<absl::Duration> WaitAfter(const SendOutcome& outcome, int attempt, absl::Time until);
  // Removes the oldest spans, at most one batch, in their order.
  std::vector<std::vector<Span>> Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDue() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool is_stopping() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stop_at_ != absl::InfiniteFuture(); }
  absl::Time stop_at() ABSL_LOCKS_EXCLUDED(mutex_);
  void Lose(int64_t spans, SpanFate fate, const std::string& why);

  const Options options_;
  Clock* const clock_;
  // Used by the exporter's thread only.
  absl::Time last_warning_ = absl::InfinitePast();

  absl::Mutex mutex_;
  // In order of arrival. Vectors are moved as a whole, so that the lock is held briefly.
  std::deque<std::vector<Span>> queue_ ABSL_GUARDED_BY(mutex_);
  // The number of spans in the queue.
  int64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  // The deadline of Stop(); InfiniteFuture() until it is called.
  absl::Time stop_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::thread thread_;
};

}  // namespace saccade::server
