// How long a forward pass takes by its batch size: a running estimate for one bucket.
#pragma once

#include <cstdint>
#include <vector>

namespace saccade::server {

// Times are in nanoseconds. Not thread-safe.
class LatencyModel {
 public:
  explicit LatencyModel(int64_t max_size);

  // A pass over `size` items took `took`. REQUIRES: 1 <= size <= max_size, took > 0.
  void Learn(int64_t size, double took);

  bool known() const { return first_ > 0; }

  // Sizes that were never seen lie on the line between those that were. 0 while nothing is known.
  double Mean(int64_t size) const { return mean_[size]; }
  // What few passes exceed: the mean and three standard deviations.
  double Upper(int64_t size) const { return mean_[size] * margin_; }

  // The largest size, at most `most`, whose Upper is within `time`; 0 if none is.
  int64_t LargestWithin(double time, int64_t most) const;

  // A pass is taken to cost fixed() + size * each().
  double fixed() const { return fixed_; }
  double each() const { return each_; }

 private:
  void Interpolate(int64_t size);
  void FitLine();

  // By size, from 1. Of sizes not seen, `seen_` is 0 and the mean is interpolated.
  std::vector<double> mean_;
  std::vector<int> seen_;
  int64_t first_ = 0;
  int64_t last_ = 0;
  // Of a pass's time to its size's mean, over all sizes.
  double relative_variance_ = 0;
  double margin_ = 1;
  double fixed_ = 0;
  double each_ = 0;
};

}  // namespace saccade::server
