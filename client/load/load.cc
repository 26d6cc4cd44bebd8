#include "client/load/load.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/load/arrivals.h"

namespace saccade::client {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);

class Load {
 public:
  Load(const LoadPlan& plan, const StartCall& start, const LoadClock& clock)
      : plan_(plan),
        start_(start),
        clock_(clock),
        due_(plan.rate > 0 ? ArrivalTimes(plan.rate, plan.duration, plan.seed)
                           : std::vector<absl::Duration>()),
        begin_(clock.now()) {}

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
    return {std::move(samples_), last_end_ - begin_};
  }

 private:
  bool is_open_loop() const { return plan_.rate > 0; }

  // Blocks until the load has ended, or for kProgressInterval if `progress` is set. Returns whether the
  // load has ended.
  bool AwaitEnd(const LoadProgress& progress) {
    const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return in_flight_ == 0 && arrived_ == due_.size();
    };
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
    for (int i = 0; i < plan_.connections; ++i) Start(static_cast<size_t>(i), i, /*waited=*/false);
  }

  void SendWhenDue() {
    for (const absl::Duration due : due_) {
      clock_.sleep_until(begin_ + due);
      size_t number = 0;
      {
        const absl::MutexLock lock(&mutex_);
        ++arrived_;
        // At the limit: End() starts this call when another ends.
        if (in_flight_ >= plan_.max_in_flight) continue;
        ++in_flight_;
        number = next_++;
      }
      Start(number, ConnectionOf(number), /*waited=*/false);
    }
  }

  int ConnectionOf(size_t number) const { return static_cast<int>(number % plan_.connections); }

  void Start(size_t number, int connection, bool waited) {
    const absl::Time sent = clock_.now();
    const LoadCall call{number, connection, is_open_loop() ? begin_ + due_[number] : sent};
    start_(call,
           [this, call, sent, waited](CallResult result) { End(call, sent, waited, std::move(result)); });
  }

  // Records the call. Starts another one in its place, if one is due.
  void End(const LoadCall& call, absl::Time sent, bool waited, CallResult result) {
    const absl::Time now = clock_.now();
    const bool failed = !result.status.ok();
    size_t number = 0;
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
      const bool goes_on = is_open_loop()
                               ? next_ < arrived_
                               : now < begin_ + plan_.duration && !(failed && plan_.stop_after_failure);
      if (!goes_on) {
        --in_flight_;
        return;
      }
      number = next_++;
    }
    Start(number, is_open_loop() ? ConnectionOf(number) : call.connection, /*waited=*/is_open_loop());
  }

  const LoadPlan plan_;
  const StartCall& start_;
  const LoadClock& clock_;
  // Open loop: when each call is due.
  const std::vector<absl::Duration> due_;
  const absl::Time begin_;
  absl::Mutex mutex_;
  std::deque<LoadSample> samples_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_end_ ABSL_GUARDED_BY(mutex_) = begin_;
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
