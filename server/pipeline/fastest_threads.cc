#include "server/pipeline/fastest_threads.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "models/use_threads.h"

namespace saccade::server {
namespace {

// What waking threads takes is little beside a pass over one item that takes longer.
constexpr absl::Duration kLong = absl::Milliseconds(20);
// Larger batches are not tried.
constexpr int64_t kFull = 8;
// Between two passes, as between two requests, so that the other threads fall asleep.
constexpr absl::Duration kPause = absl::Milliseconds(3);
// Still fewer threads are not tried once they are so much slower.
constexpr double kMuchSlower = 1.5;

// The median of a few passes after the first, which allocates and chooses algorithms; infinite, and computed
// but once, if a pass takes longer than `at_most`.
absl::StatusOr<absl::Duration> MedianOf(const std::function<absl::Status()>& pass, absl::Duration at_most,
                                        Clock* clock) {
  const auto time = [&]() -> absl::StatusOr<absl::Duration> {
    const absl::Time start = clock->Now();
    if (absl::Status ran = pass(); !ran.ok()) return ran;
    return clock->Now() - start;
  };
  // The first may take far longer than those after it.
  auto first = time();
  if (!first.ok()) return first.status();
  if (*first > 10 * at_most) return absl::InfiniteDuration();
  std::array<absl::Duration, 5> took;
  for (absl::Duration& each : took) {
    absl::SleepFor(kPause);
    const auto again = time();
    if (!again.ok()) return again.status();
    if (*again > at_most) return absl::InfiniteDuration();
    each = *again;
  }
  std::nth_element(took.begin(), took.begin() + took.size() / 2, took.end());
  return took[took.size() / 2];
}

// Small where batches of one and full ones are fast: a share of the one counts as much as a share of the
// other. Nothing, if they are too long to be tried, or fail.
std::optional<double> Slowness(const PassMaker& make, int64_t max_batch_size, Clock* clock) {
  const int64_t full = std::min(kFull, max_batch_size);
  double product = 1;
  for (const int64_t size : std::set<int64_t>{1, full}) {
    const std::function<absl::Status()> pass = make(size);
    if (pass == nullptr) return std::nullopt;
    const auto took = MedianOf(pass, kLong * size, clock);
    if (!took.ok() || *took == absl::InfiniteDuration()) return std::nullopt;
    product *= absl::ToDoubleSeconds(*took);
  }
  return product;
}

}  // namespace

absl::StatusOr<int> LoadForFastest(const LoadForThreads& load, int most, int64_t max_batch_size,
                                   Clock* clock) {
  int fastest = most;
  int loaded = 0;
  std::optional<double> least;
  for (int threads = most; threads >= 1; threads /= 2) {
    models::UseThreads(threads);
    const auto make = load();
    if (!make.ok()) return make.status();
    loaded = threads;
    if (most == 1) break;
    const std::optional<double> slowness = Slowness(*make, max_batch_size, clock);
    if (!slowness) break;
    if (!least || *slowness < *least) {
      least = slowness;
      fastest = threads;
    } else if (*slowness > *least * kMuchSlower) {
      break;
    }
  }
  models::UseThreads(fastest);
  if (loaded == fastest) return fastest;
  if (const auto make = load(); !make.ok()) return make.status();
  return fastest;
}

}  // namespace saccade::server
