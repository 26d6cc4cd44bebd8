#include "client/load/load.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/load/arrivals.h"

namespace saccade::client {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);

class Load {
 public:
  Load(const LoadPlan& plan, const StartCall& start, const LoadClock& clock)
      : plan_(plan), start_(start), clock_(clock), begin_(clock.now()) {
    if (!is_open_loop()) return;
    arrivals_.emplace(plan.rate, plan.seed);
    is_arriving_ = true;
  }

  LoadResult Run(const LoadProgress& progress) {
    std::thread arrivals;
    if (is_open_loop()) {
      arrivals = std::thread([this] { SendWhenDue(); });
    } else {
      StartConnections();
    }
    while (!AwaitEnd(progress)) continue;
    if (is_open_loop()) arrivals.join();
    const absl::MutexLock lock(&mutex_);
    std::sort(samples_.begin(), samples_.end(),
              [](const LoadSample& one, const LoadSample& other) { return one.due < other.due; });
    return {.samples = std::move(samples_),
            .not_sent = is_open_loop() ? arrived_ - next_ : 0,
            .elapsed = last_end_ - begin_};
  }

 private:
  bool is_open_loop() const { return plan_.rate > 0; }
  bool IsOver(absl::Time now) const { return now >= begin_ + plan_.duration; }

  // Blocks until the load has ended, or for kProgressInterval if `progress` is set. Returns whether the
  // load has ended.
  bool AwaitEnd(const LoadProgress& progress) {
    const auto ended = [this]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return in_flight_ == 0 && !is_arriving_; };
    size_t count = 0;
    bool over = false;
    {
      const absl::MutexLock lock(&mutex_);
      over = mutex_.AwaitWithTimeout(absl::Condition(&ended),
                                     progress ? kProgressInterval : absl::InfiniteDuration());
      count = samples_.size();
    }
    if (progress) {
      progress(std::min(1.0, absl::FDivDuration(clock_.now() - begin_, plan_.duration)), count);
    }
    return over;
  }

  void StartConnections() {
    {
      const absl::MutexLock lock(&mutex_);
      in_flight_ = plan_.connections;
      next_ = static_cast<size_t>(plan_.connections);
    }
    for (int i = 0; i < plan_.connections; ++i) {
      Start({.number = static_cast<size_t>(i), .connection = i, .due = {}}, /*waited=*/false);
    }
  }

  void SendWhenDue() {
    Arrivals arrivals(plan_.rate, plan_.seed);
    bool is_over = false;
    for (absl::Duration due = arrivals.Next(); due < plan_.duration; due = arrivals.Next()) {
      if (!is_over) clock_.sleep_until(begin_ + due);
      Arrive(is_over);
      is_over = IsOver(clock_.now());
    }
    const absl::MutexLock lock(&mutex_);
    is_arriving_ = false;
  }

  // Counts a call that is due. Starts it, unless the load is over or the call has to wait.
  void Arrive(bool is_over) {
    LoadCall call;
    {
      const absl::MutexLock lock(&mutex_);
      const bool others_wait = next_ < arrived_;
      ++arrived_;
      // At the limit, End() starts this call when another ends. Others wait below the limit only if a call
      // has ended after the end of the duration.
      if (is_over || others_wait || in_flight_ >= plan_.max_in_flight) return;
      ++in_flight_;
      call = TakeNext();
    }
    Start(call, /*waited=*/false);
  }

  // Open loop: returns the call that has been due for longest.
  LoadCall TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t number = next_++;
    return {.number = number,
            .connection = static_cast<int>(number % plan_.connections),
            .due = begin_ + arrivals_->Next()};
  }

  void Start(LoadCall call, bool waited) {
    const absl::Time sent = clock_.now();
    if (!is_open_loop()) call.due = sent;
    start_(call,
           [this, call, sent, waited](CallResult result) { End(call, sent, waited, std::move(result)); });
  }

  // Records the call. Starts another one in its place, if one is due.
  void End(const LoadCall& call, absl::Time sent, bool waited, CallResult result) {
    const absl::Time now = clock_.now();
    const bool failed = !result.status.ok();
    LoadCall next;
    {
      const absl::MutexLock lock(&mutex_);
      samples_.push_back({.connection = call.connection,
                          .due = call.due - begin_,
                          .sent = sent - begin_,
                          .ended = now - begin_,
                          .waited = waited,
                          .status = std::move(result.status),
                          .timings = result.timings,
                          .batch_size = result.batch_size});
      last_end_ = std::max(last_end_, now);
      const bool goes_on =
          !IsOver(now) && (is_open_loop() ? next_ < arrived_ : !(failed && plan_.stop_after_failure));
      if (!goes_on) {
        --in_flight_;
        return;
      }
      next = is_open_loop() ? TakeNext() : LoadCall{next_++, call.connection, {}};
    }
    Start(next, /*waited=*/is_open_loop());
  }

  const LoadPlan plan_;
  const StartCall& start_;
  const LoadClock& clock_;
  const absl::Time begin_;
  absl::Mutex mutex_;
  std::deque<LoadSample> samples_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_end_ ABSL_GUARDED_BY(mutex_) = begin_;
  // Open loop: when each call is due, from the next call to start on; null in a closed loop.
  std::optional<Arrivals> arrivals_ ABSL_GUARDED_BY(mutex_);
  // Open loop: whether more calls can become due.
  bool is_arriving_ ABSL_GUARDED_BY(mutex_) = false;
  // Open loop: number of calls that have become due.
  size_t arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of the next call to start.
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::Status LoadResult::FirstFailure() const {
  const auto failed = std::find_if(samples.begin(), samples.end(),
                                   [](const LoadSample& sample) { return !sample.status.ok(); });
  return failed == samples.end() ? absl::OkStatus() : failed->status;
}

LoadResult RunLoad(const LoadPlan& plan, const StartCall& start, const LoadProgress& progress,
                   const LoadClock& clock) {
  return Load(plan, start, clock).Run(progress);
}

absl::Status WarmUp(int connections, const StartCall& start) {
  return RunLoad({.duration = absl::ZeroDuration(), .connections = connections}, start).FirstFailure();
}

}  // namespace saccade::client
