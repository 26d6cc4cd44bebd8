// gRPC's retryThrottling.
#pragma once

#include <algorithm>

namespace saccade::server::simulation {

class RetryBudget {
 public:
  // `max` tokens at most and at first; 0 allows every retry.
  RetryBudget(double max, double ratio) : max_(max), ratio_(ratio), tokens_(max) {}

  void Succeeded() { tokens_ = std::min(max_, tokens_ + ratio_); }
  void Failed() { tokens_ = std::max(0.0, tokens_ - 1); }
  bool allows() const { return max_ == 0 || tokens_ > max_ / 2; }

 private:
  double max_;
  double ratio_;
  double tokens_;
};

}  // namespace saccade::server::simulation
