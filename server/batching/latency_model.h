// Estimates the time of a forward pass by batch size, for one bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/batching/nanos.h"

namespace saccade::server {

// A piecewise linear function through a few sizes, the knots. Each pass moves the knots next to its size, so
// it also informs neighbouring sizes, and a single quick pass does not make its size look cheap. Its memory,
// and the time of each call, grow with the logarithm of the maximum size, because every bucket has a model.
// Not thread-safe.
class LatencyModel {
 public:
  explicit LatencyModel(int64_t max_size);

  // Records that a pass over `size` items took `took`. REQUIRES: 1 <= size <= max_size, took > 0.
  void Learn(int64_t size, Nanos took);

  // Lowers the estimate a little. Called when requests with `time` left are rejected because of the estimate
  // and no pass has corrected it for a while; otherwise a slow spell would reject requests forever. Returns
  // false and does nothing if the estimate before any doubt is far above `time`.
  bool Doubt(Nanos time);

  bool known() const { return first_ > 0; }
  // The smallest and the largest size of a measured pass; 0 if there was none.
  int64_t smallest() const { return first_; }
  int64_t largest() const { return last_; }
  // Standard deviation of a pass's time relative to the mean of its size.
  double deviation() const;

  // Never decreases with the size. 0 while no pass is known. REQUIRES: 1 <= size <= max_size.
  Nanos Mean(int64_t size) const {
    return size < static_cast<int64_t>(small_.size()) ? small_[size] : Between(Below(size), size);
  }
  // An upper bound that few passes exceed: the mean plus three standard deviations.
  Nanos Upper(int64_t size) const { return Mean(size) * margin_; }

  // The largest size up to `max` whose Upper is at most `time`; 0 if there is none.
  int64_t LargestWithin(Nanos time, int64_t max) const;

  // A linear fit: a pass costs about fixed() + size * each().
  Nanos fixed() const { return fixed_; }
  Nanos each() const { return each_; }

 private:
  struct Knot {
    int64_t size = 0;
    Nanos mean = {};
    // Number of measured passes, weighted by how near they were.
    double passes = 0;
    // What Fill() computes: by how much `mean` grows for each item up to the next knot, and Mean() at this
    // size.
    Nanos step = {};
    Nanos floor = {};
  };

  // The knots on both sides of a size (possibly the same knot), and how near the size is to the upper one,
  // from 0 to 1.
  struct Neighbours {
    Knot* below = nullptr;
    Knot* above = nullptr;
    double nearness = 1;

    Nanos mean() const { return below->mean + nearness * (above->mean - below->mean); }
  };

  Neighbours Around(int64_t size);
  // Multiplies the estimate for the size between `knots` by about `factor`; most of the change applies to all
  // sizes.
  void Move(const Neighbours& knots, double factor);
  void Draw(int64_t size, Nanos took);
  void Extend(int64_t size, Nanos took);
  // Computes everything that depends on the knots and on `scale_`.
  void Fill();
  // The last knot whose size is at most `size`.
  const Knot& Below(int64_t size) const;
  // The mean between `below` and the next knot.
  Nanos Between(const Knot& below, int64_t size) const;

  // Ascending, from size 1 to the maximum size.
  std::vector<Knot> knots_;
  // Mean() of the first sizes, which most batches have.
  std::vector<Nanos> small_;
  // Current speed of the machine relative to the knots: one factor for all sizes.
  double scale_ = 1;
  // The smallest and the largest size of a measured pass; 0 if there was none.
  int64_t first_ = 0;
  int64_t last_ = 0;
  // Variance of a pass's time relative to the mean of its size, over all sizes.
  double relative_variance_;
  double passes_ = 0;
  // Upper() / Mean().
  double margin_;
  // Product of all factors by which Doubt() lowered the estimate since the last pass.
  double doubt_ = 1;
  Nanos fixed_;
  Nanos each_;
};

}  // namespace saccade::server
