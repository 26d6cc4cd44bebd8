#include "server/simulation/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace saccade::server::simulation {

double ServeAllRate(const LatencyModel& latency, int instances, int buckets, Instant deadline,
                    int64_t max_batch_size) {
  const auto alpha = static_cast<double>(latency.alpha) * 1e-9;
  const auto beta = static_cast<double>(latency.beta) * 1e-9;
  const auto due = static_cast<double>(deadline) * 1e-9;
  const double share = 1 + static_cast<double>(buckets) / instances;
  const double batch = (due / share - alpha) / beta;
  if (batch <= 0) return 0;
  const auto max = static_cast<double>(max_batch_size);
  if (batch > max) return instances * max / (alpha + beta * max);
  return instances / beta * (1 - alpha * share / due);
}

double OverloadGoodput(const LatencyModel& latency, int instances, double rate, Instant deadline,
                       int64_t max_batch_size) {
  int64_t batch = 0;
  while (batch < max_batch_size && static_cast<double>(batch) / rate * 1e9 +
                                           static_cast<double>(latency(static_cast<double>(batch + 1))) <=
                                       static_cast<double>(deadline)) {
    ++batch;
  }
  if (batch == 0) return 0;
  const double served =
      instances * static_cast<double>(batch) * 1e9 / static_cast<double>(latency(static_cast<double>(batch)));
  return std::min(rate, served);
}

// finish[j][d] is the earliest time at which the instance is idle again after the first j requests, d of
// which were dropped. Requests are due in their order of arrival, so the batches of a best schedule are of
// consecutive requests, and the dropped ones lie between two batches: to drop the first member of a batch
// instead of a later one is never worse.
int64_t FewestMissed(const LatencyModel& latency, const std::vector<Instant>& arrivals, Instant deadline,
                     int64_t max_batch_size, int64_t max) {
  constexpr double kNotPossible = std::numeric_limits<double>::infinity();
  const auto n = static_cast<int64_t>(arrivals.size());
  const int64_t rows = max_batch_size + 1;
  const int64_t columns = max + 1;
  // A ring of rows: row j only reaches the next max_batch_size rows.
  std::vector<double> finish(static_cast<size_t>(rows * columns), kNotPossible);
  finish[0] = 0;
  const auto row = [&](int64_t j) { return finish.data() + (j % rows) * columns; };
  for (int64_t j = 0; j < n; ++j) {
    const double* const from = row(j);
    const auto due = static_cast<double>(arrivals[j] + deadline);
    for (int64_t b = 1; b <= std::min(max_batch_size, n - j); ++b) {
      const auto last = static_cast<double>(arrivals[j + b - 1]);
      const auto took = static_cast<double>(latency(static_cast<double>(b)));
      if (last + took > due) break;
      double* const to = row(j + b);
      for (int64_t d = 0; d < columns; ++d) {
        const double done = std::max(from[d], last) + took;
        to[d] = std::min(to[d], done <= due ? done : kNotPossible);
      }
    }
    double* const given_up = row(j + 1);
    for (int64_t d = 1; d < columns; ++d) given_up[d] = std::min(given_up[d], from[d - 1]);
    std::fill_n(row(j), columns, kNotPossible);
  }
  const double* const last = row(n);
  const double* const found = std::find_if(last, last + columns, [](double at) { return at < kNotPossible; });
  return found - last;
}

}  // namespace saccade::server::simulation
