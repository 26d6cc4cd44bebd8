// Compares how long two versions of a model take for forward passes over the same requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace saccade::server {

struct PassTime {
  // Items in the pass; 0 if it was not timed.
  int64_t batch_size = 0;
  // Requests in the pass. Only set for a pass of the answering version.
  int64_t requests = 1;
  // Duration of the pass, without the time for which its thread waited for a core.
  absl::Duration took = absl::ZeroDuration();
};

// Not thread-safe.
class PassTimes {
 public:
  // Maximum number of pairs, which take 160 KB; later ones are ignored.
  static constexpr size_t kMaxPairs = 10'000;

  // Adds the times of two passes over the same requests: the answering version's and the shadow version's.
  // Ignores them if either was not timed, or if the batch sizes differ and the times cannot be compared.
  void Add(const PassTime& answered, const PassTime& shadow);

  int64_t size() const { return static_cast<int64_t>(answered_.size()); }
  // Requests in the pairs of passes that were added.
  int64_t requests() const { return requests_; }

  // The quantile of the shadow version's times, divided by the same quantile of the answering version's; both
  // by the nearest rank. REQUIRES: size() > 0, 0 < quantile <= 1.
  double RatioAt(double quantile) const;

 private:
  // The times of the pairs in seconds, in the order in which they were added.
  std::vector<double> answered_;
  std::vector<double> shadow_;
  int64_t requests_ = 0;
};

}  // namespace saccade::server
