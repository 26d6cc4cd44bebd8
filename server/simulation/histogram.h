// A histogram of durations with a relative error below a quarter of a per cent.
#pragma once

#include <cstdint>
#include <vector>

#include "server/simulation/virtual_time.h"

namespace saccade::server::simulation {

class Histogram {
 public:
  void Add(Nanos span);

  // The q-quantile: the smallest duration that a share of at least `q` does not exceed. 0 if the histogram is
  // empty.
  Nanos Percentile(double q) const;

  int64_t count() const { return count_; }

 private:
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
};

}  // namespace saccade::server::simulation
