#include "client/load/latency.h"

#include <algorithm>
#include <cmath>

namespace saccade::client {

Latency Summarise(std::vector<absl::Duration> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto rank = [&](double share) {
    return samples[static_cast<size_t>(std::ceil(share * static_cast<double>(samples.size()))) - 1];
  };
  absl::Duration sum;
  for (const absl::Duration sample : samples) sum += sample;
  return {rank(0.50), rank(0.90), rank(0.99), sum / static_cast<double>(samples.size())};
}

}  // namespace saccade::client
