#include "server/simulation/bounds.h"

#include <algorithm>
#include <cmath>

namespace saccade::server::simulation {

double ServeAllRate(const LinearLatency& latency, int instances, int buckets, Nanos deadline,
                    int64_t max_batch_size) {
  const auto alpha = latency.alpha.count() * 1e-9;
  const auto beta = latency.beta.count() * 1e-9;
  const auto due = deadline.count() * 1e-9;
  const double share = 1 + static_cast<double>(buckets) / instances;
  const double batch = (due / share - alpha) / beta;
  if (batch <= 0) return 0;
  const auto max = static_cast<double>(max_batch_size);
  if (batch > max) return instances * max / (alpha + beta * max);
  return instances / beta * (1 - alpha * share / due);
}

double OverloadGoodput(const LinearLatency& latency, int instances, double rate, Nanos deadline,
                       int64_t max_batch_size) {
  int64_t batch = 0;
  while (batch < max_batch_size &&
         Nanos(static_cast<double>(batch) / rate * 1e9) + latency(static_cast<double>(batch + 1)) <=
             deadline) {
    ++batch;
  }
  if (batch == 0) return 0;
  const double served =
      instances * static_cast<double>(batch) * 1e9 / latency(static_cast<double>(batch)).count();
  return std::min(rate, served);
}

// finish[j][d] is the earliest time at which the instance is idle again after the first j requests, d of
// which were dropped. Requests are due in their order of arrival, so the batches of a best schedule are of
// consecutive requests, and the dropped ones lie between two batches: to drop the first member of a batch
// instead of a later one is never worse.
int64_t FewestMissed(const LinearLatency& latency, const std::vector<Nanos>& arrivals, Nanos deadline,
                     int64_t max_batch_size, int64_t max) {
  const auto n = static_cast<int64_t>(arrivals.size());
  const int64_t rows = max_batch_size + 1;
  const int64_t columns = max + 1;
  // A ring of rows: row j only reaches the next max_batch_size rows.
  std::vector<Nanos> finish(static_cast<size_t>(rows * columns), kNever);
  finish[0] = Nanos();
  const auto row = [&](int64_t j) { return finish.data() + (j % rows) * columns; };
  for (int64_t j = 0; j < n; ++j) {
    const Nanos* const from = row(j);
    const Nanos due = arrivals[j] + deadline;
    for (int64_t b = 1; b <= std::min(max_batch_size, n - j); ++b) {
      const Nanos last = arrivals[j + b - 1];
      const Nanos took = latency(static_cast<double>(b));
      if (last + took > due) break;
      Nanos* const to = row(j + b);
      for (int64_t d = 0; d < columns; ++d) {
        const Nanos done = std::max(from[d], last) + took;
        to[d] = std::min(to[d], done <= due ? done : kNever);
      }
    }
    Nanos* const given_up = row(j + 1);
    for (int64_t d = 1; d < columns; ++d) given_up[d] = std::min(given_up[d], from[d - 1]);
    std::fill_n(row(j), columns, kNever);
  }
  const Nanos* const last = row(n);
  const Nanos* const found = std::find_if(last, last + columns, [](Nanos at) { return at < kNever; });
  return found - last;
}

}  // namespace saccade::server::simulation
