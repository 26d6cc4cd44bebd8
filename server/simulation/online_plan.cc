#include "server/simulation/online_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace saccade::server::simulation {
namespace {

// Number of sizes of a batch that are tried in each state.
constexpr int64_t kTriedSizes = 8;
// How often the values of waiting are computed for each time that those of starting are.
constexpr int kWaitsPerSweep = 8;
// In slots. Times are rounded to nanoseconds.
constexpr double kTolerance = 1e-5;

}  // namespace

OnlinePlan::OnlinePlan(const Options& options, SlottedArrivals arrivals)
    : options_(options),
      arrivals_(std::move(arrivals)),
      slot_(options.deadline / options.slots),
      discount_(1 - 1 / (options.horizon * options.slots)) {
  double passes = 0;
  for (int64_t batch = 1; batch <= options.max_batch_size && Pass(batch) <= options.slots; ++batch) {
    max_batch_ = batch;
    passes = std::max(passes, static_cast<double>(batch) * std::floor(options.slots / Pass(batch)));
  }
  max_queued_ = static_cast<int64_t>(1.5 * passes) + 4;
  const auto longest = static_cast<size_t>(std::ceil(Pass(std::max<int64_t>(1, max_batch_))));
  const size_t states = Index(arrivals_.states.size(), 0, 0);
  values_.assign(std::max<size_t>(2, longest + 1), Values(states));
  for (int sweep = 0; sweep < options.sweeps; ++sweep) Sweep();
  for (size_t i = 1; i < values_.size(); ++i) Evolve(values_[i - 1], &values_[i]);
}

double OnlinePlan::Pass(int64_t batch) const { return options_.latency(static_cast<double>(batch)) / slot_; }

double OnlinePlan::At(int64_t after, int64_t queued, double age, size_t state) const {
  const Values& values = values_[static_cast<size_t>(after)];
  queued = std::min(queued, max_queued_);
  if (queued == 0) return values[Index(state, 0, 0)];
  const double at = std::clamp(age - options_.newest_age, 0.0, static_cast<double>(options_.slots));
  const auto low = static_cast<int64_t>(at);
  const int64_t high = std::min<int64_t>(low + 1, options_.slots);
  const double share = at - static_cast<double>(low);
  return (1 - share) * values[Index(state, low, queued)] + share * values[Index(state, high, queued)];
}

double OnlinePlan::Start(int64_t batch, int64_t left, double age, size_t state) const {
  const double pass = Pass(batch);
  const auto low = static_cast<int64_t>(pass);
  const double share = pass - static_cast<double>(low);
  double value = (1 - share) * At(low, left, age, state);
  if (share > 0) value += share * At(low + 1, left, age, state);
  return static_cast<double>(batch) + std::pow(discount_, pass) * value;
}

// The best of some sizes, with as many of the first items dropped as would be late.
double OnlinePlan::StartBest(int64_t queued, double age, size_t state) const {
  double best = 0;
  const auto all = static_cast<double>(queued);
  for (int64_t batch = std::min(queued, max_batch_); batch > 0;
       batch -= std::max<int64_t>(1, queued / kTriedSizes)) {
    const double max_age = options_.slots - Pass(batch);
    const auto late = age <= max_age ? 0 : static_cast<int64_t>(std::ceil(all * (1 - max_age / age)));
    const int64_t left = queued - late - batch;
    if (left < 0) continue;
    best = std::max(best, Start(batch, left, age * static_cast<double>(left) / all, state));
  }
  return best;
}

OnlinePlan::Choice OnlinePlan::Choose(absl::Span<const double> ages, double silence) const {
  const auto queued = static_cast<int64_t>(ages.size());
  const size_t state = arrivals_.StateAfter(silence);
  Choice best;
  // The number of items that would be late in the batch.
  int64_t late = 0;
  const auto count_late = [&](int64_t batch) {
    const double max_age = options_.slots - Pass(batch) + kTolerance;
    while (late < queued && ages[static_cast<size_t>(late)] > max_age) ++late;
  };
  count_late(1);
  best.late = late;
  if (late == queued) return best;
  double value = discount_ * At(1, queued - late, ages[static_cast<size_t>(late)], state);
  for (int64_t batch = 1; batch <= std::min(queued, max_batch_); ++batch) {
    count_late(batch);
    const int64_t left = queued - late - batch;
    if (left < 0) break;
    const double started = Start(batch, left, left == 0 ? 0 : ages[static_cast<size_t>(late + batch)], state);
    if (started <= value) continue;
    value = started;
    best = {.late = late, .batch = batch};
  }
  return best;
}

void OnlinePlan::Evolve(const Values& after, Values* before) const {
  const auto counts = static_cast<int64_t>(arrivals_.counts.size());
  double tail = 1;
  for (const double count : arrivals_.counts) tail -= count;
  Values arrived(static_cast<size_t>(max_queued_ + 1));
  // By the number of items before the first of the tail.
  Values geometric(arrived.size());
  // Computes `arrived` by the number of items before the slot.
  const auto arrive = [&](const float* values) {
    geometric[static_cast<size_t>(max_queued_)] = values[max_queued_];
    for (int64_t n = max_queued_; n-- > 0;)
      geometric[static_cast<size_t>(n)] = static_cast<float>(
          (1 - arrivals_.more) * values[n + 1] + arrivals_.more * geometric[static_cast<size_t>(n + 1)]);
    for (int64_t n = 0; n <= max_queued_; ++n) {
      double sum = tail * geometric[static_cast<size_t>(std::min(n + counts, max_queued_))];
      for (int64_t i = 0; i < counts; ++i)
        sum += arrivals_.counts[static_cast<size_t>(i)] * values[std::min(n + i + 1, max_queued_)];
      arrived[static_cast<size_t>(n)] = static_cast<float>(sum);
    }
  };
  for (int64_t age = 0; age <= options_.slots; ++age) {
    const int64_t older = std::min<int64_t>(age + 1, options_.slots);
    arrive(&after[Index(0, 0, 0)]);
    const float first = arrived[0];
    arrive(&after[Index(0, older, 0)]);
    arrived[0] = first;
    for (size_t state = 0; state < arrivals_.states.size(); ++state) {
      const auto& [from, arrives, advances] = arrivals_.states[state];
      const size_t next = std::min(state + 1, arrivals_.states.size() - 1);
      for (int64_t n = 0; n <= max_queued_; ++n) {
        const int64_t then = n == 0 ? 0 : older;
        (*before)[Index(state, age, n)] = static_cast<float>(
            arrives * arrived[static_cast<size_t>(n)] +
            (1 - arrives - advances) * after[Index(state, then, n)] + advances * after[Index(next, then, n)]);
      }
    }
  }
}

void OnlinePlan::Sweep() {
  for (size_t i = 1; i < values_.size(); ++i) Evolve(values_[i - 1], &values_[i]);
  Values start(values_[0].size());
  for (size_t state = 0; state < arrivals_.states.size(); ++state) {
    for (int64_t age = 0; age <= options_.slots; ++age) {
      for (int64_t n = 1; n <= max_queued_; ++n)
        start[Index(state, age, n)] =
            static_cast<float>(StartBest(n, static_cast<double>(age) + options_.newest_age, state));
    }
  }
  Values waited(start.size());
  for (int i = 0; i < kWaitsPerSweep; ++i) {
    Evolve(values_[0], &waited);
    for (size_t j = 0; j < start.size(); ++j)
      values_[0][j] = std::max(static_cast<float>(discount_) * waited[j], start[j]);
  }
}

}  // namespace saccade::server::simulation
