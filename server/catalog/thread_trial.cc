#include "server/catalog/thread_trial.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "models/device/use_threads.h"

namespace saccade::server {
namespace {

// If a pass over one item takes longer than this, the cost of waking threads is negligible.
constexpr absl::Duration kLong = absl::Milliseconds(20);
// The largest batch size that is tried.
constexpr int64_t kFull = 8;
// The pause between two passes, as between two requests, so that the other threads go to sleep.
constexpr absl::Duration kPause = absl::Milliseconds(3);
// Once a number of threads costs more than the best by this factor, smaller numbers are not tried.
constexpr double kMuchMore = 1.5;

// Passes of which the median is taken: all of them, or fewer once they have taken so long together.
constexpr size_t kMinPasses = 5;
constexpr size_t kMaxPasses = 15;
constexpr absl::Duration kEnough = absl::Milliseconds(100);

// The median of some passes after the first, which allocates and chooses algorithms. Infinite if one of them
// takes longer than `max_time`, or the first longer than ten times that; no further pass is then computed.
absl::StatusOr<absl::Duration> MedianOf(const std::function<absl::Status()>& pass, absl::Duration max_time,
                                        Clock* clock) {
  const auto time = [&]() -> absl::StatusOr<absl::Duration> {
    const absl::Time start = clock->Now();
    if (absl::Status ran = pass(); !ran.ok()) return ran;
    return clock->Now() - start;
  };
  // The first pass may take far longer than the later ones.
  auto first = time();
  if (!first.ok()) return first.status();
  if (*first > 10 * max_time) return absl::InfiniteDuration();
  std::vector<absl::Duration> took;
  absl::Duration all;
  while (took.size() < kMinPasses || (took.size() < kMaxPasses && all < kEnough)) {
    absl::SleepFor(kPause);
    const auto again = time();
    if (!again.ok()) return again.status();
    if (*again > max_time) return absl::InfiniteDuration();
    all += took.emplace_back(*again);
  }
  std::nth_element(took.begin(), took.begin() + static_cast<int64_t>(took.size() / 2), took.end());
  return took[took.size() / 2];
}

// The time of a batch of one, times the processor time of a full batch with so many threads, so that a
// relative change of either counts the same. nullopt if a pass takes too long, fails or cannot be made.
std::optional<double> CostOf(const PassMaker& make, int threads, int64_t max_batch_size, Clock* clock) {
  double product = threads;
  for (const int64_t size : {int64_t{1}, std::min(kFull, max_batch_size)}) {
    const std::function<absl::Status()> pass = make(size);
    if (pass == nullptr) return std::nullopt;
    const auto took = MedianOf(pass, kLong * size, clock);
    if (!took.ok() || *took == absl::InfiniteDuration()) return std::nullopt;
    product *= absl::ToDoubleSeconds(*took);
  }
  return product;
}

}  // namespace

absl::StatusOr<int> LoadForLeastCost(const LoadForThreads& load, const CostOfThreads& cost_of, int max) {
  int best = max;
  int loaded = 0;
  std::optional<double> min;
  for (int threads = max; threads >= 1; threads /= 2) {
    models::UseThreads(threads);
    const auto make = load(threads);
    if (!make.ok()) return make.status();
    loaded = threads;
    if (max == 1) break;
    const std::optional<double> cost = cost_of(*make, threads);
    if (!cost) break;
    if (!min || *cost < *min) {
      min = cost;
      best = threads;
    } else if (*cost > *min * kMuchMore) {
      break;
    }
  }
  models::UseThreads(best);
  if (loaded == best) return best;
  if (const auto make = load(best); !make.ok()) return make.status();
  return best;
}

absl::StatusOr<int> LoadForBestThreads(const LoadForThreads& load, int max, int64_t max_batch_size,
                                       Clock* clock) {
  const auto cost_of = [&](const PassMaker& make, int threads) {
    return CostOf(make, threads, max_batch_size, clock);
  };
  return LoadForLeastCost(load, cost_of, max);
}

}  // namespace saccade::server
