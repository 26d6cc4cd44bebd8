#include "server/protocols/retry_jitter.h"

#include <algorithm>

namespace saccade::server {
namespace {

// SplitMix64: mixes the values of a counter.
constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

absl::Duration RetryJitter::Spread(absl::Duration hint) {
  const uint64_t drawn = Mix(state_.fetch_add(kStep, std::memory_order_relaxed) + kStep);
  const double factor = 0.5 + static_cast<double>(drawn >> 11) * 0x1p-53;
  return std::max(absl::Milliseconds(1), absl::Ceil(hint * factor, absl::Milliseconds(1)));
}

}  // namespace saccade::server
