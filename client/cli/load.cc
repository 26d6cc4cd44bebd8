#include "client/cli/load.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace saccade::client {
namespace {

constexpr absl::Duration kProgressEvery = absl::Milliseconds(200);

class Load {
 public:
  Load(const LoadPlan& plan, const std::function<absl::StatusOr<AnyAnswer>(size_t)>& ask,
       const LoadClock& clock)
      : plan_(plan), ask_(ask), clock_(clock), due_(DueTimes(plan)), begin_(clock.now()) {
    for (int i = 0; i < plan.in_flight; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~Load() { Join(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Blocks for kProgressEvery at most. Returns false once all threads have ended.
  bool Wait(const std::function<void(double, size_t)>& progress) {
    size_t answers = 0;
    bool over = false;
    {
      const absl::MutexLock lock(&mutex_);
      const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return ended_ == plan_.in_flight; };
      over = mutex_.AwaitWithTimeout(absl::Condition(&ended), kProgressEvery);
      answers = samples_.size();
    }
    progress(std::min(1.0, absl::FDivDuration(clock_.now() - begin_, plan_.duration)), answers);
    return !over;
  }

  LoadResult Take() {
    Join();
    const absl::MutexLock lock(&mutex_);
    std::sort(samples_.begin(), samples_.end(),
              [](const LoadSample& one, const LoadSample& other) { return one.due < other.due; });
    return {std::move(samples_), last_answer_ - begin_};
  }

 private:
  void Work() {
    while (const auto next = Next()) Send(next->first, next->second);
    const absl::MutexLock lock(&mutex_);
    ++ended_;
  }

  // Returns the next request and when it is due; empty once the duration is over.
  std::optional<std::pair<size_t, absl::Time>> Next() {
    const size_t request = next_++;
    if (plan_.rate > 0) {
      if (request >= due_.size()) return std::nullopt;
      return std::pair(request, begin_ + due_[request]);
    }
    const absl::Time now = clock_.now();
    if (now >= begin_ + plan_.duration) return std::nullopt;
    return std::pair(request, now);
  }

  void Send(size_t request, absl::Time due) {
    clock_.sleep_until(due);
    const absl::Time sent = clock_.now();
    const auto answer = ask_(request);
    const absl::Time answered = clock_.now();
    LoadSample sample{
        .due = due - begin_, .latency = answered - due, .held = sent - due, .status = answer.status()};
    if (answer.ok()) {
      const auto& head = std::visit([](const auto& any) -> const Answer& { return any; }, *answer);
      sample.timings = head.timings;
      sample.batch_size = head.batch_size;
    }
    const absl::MutexLock lock(&mutex_);
    samples_.push_back(std::move(sample));
    last_answer_ = std::max(last_answer_, answered);
  }

  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  const LoadPlan plan_;
  const std::function<absl::StatusOr<AnyAnswer>(size_t)>& ask_;
  const LoadClock& clock_;
  const std::vector<absl::Duration> due_;
  const absl::Time begin_;
  std::atomic<size_t> next_ = 0;
  absl::Mutex mutex_;
  std::vector<LoadSample> samples_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_answer_ ABSL_GUARDED_BY(mutex_) = begin_;
  int ended_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

std::vector<absl::Duration> DueTimes(const LoadPlan& plan) {
  std::vector<absl::Duration> times;
  if (plan.rate <= 0) return times;
  std::mt19937_64 random(plan.seed);
  std::exponential_distribution<double> gap(plan.rate);
  for (absl::Duration at = absl::Seconds(gap(random)); at < plan.duration; at += absl::Seconds(gap(random)))
    times.push_back(at);
  return times;
}

LoadResult RunLoad(const LoadPlan& plan, const std::function<absl::StatusOr<AnyAnswer>(size_t request)>& ask,
                   const std::function<void(double done, size_t answers)>& progress, const LoadClock& clock) {
  Load load(plan, ask, clock);
  while (load.Wait(progress)) continue;
  return load.Take();
}

}  // namespace saccade::client
