// How long passes over the same requests took in two versions of a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace saccade::server {

struct PassTime {
  // Items in the pass; 0 if it was not timed.
  int64_t batch_size = 0;
  // Requests in the pass. Known only of the version that answers.
  int64_t requests = 1;
  // Without the time for which its thread waited for a core.
  absl::Duration took = absl::ZeroDuration();
};

// Not thread-safe.
class PassTimes {
 public:
  // Pairs beyond these are not kept: 160 KB.
  static constexpr size_t kMaxPairs = 10'000;

  // Adds the times of a pass of the version that answers and of the shadow version's over the same requests.
  // Of batches of different sizes the times say nothing: they are left out.
  void Add(const PassTime& answered, const PassTime& shadow);

  int64_t size() const { return static_cast<int64_t>(answered_.size()); }
  // Requests in the pairs of passes that were added.
  int64_t requests() const { return requests_; }

  // The quantile of the shadow's times over that of the other's, each by its nearest rank. 0 < quantile <= 1.
  // REQUIRES: size() > 0.
  double RatioAt(double quantile) const;

 private:
  // Seconds, in the order in which they were added.
  std::vector<double> answered_;
  std::vector<double> shadow_;
  int64_t requests_ = 0;
};

}  // namespace saccade::server
