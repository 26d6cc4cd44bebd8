#include "server/http/http_limits.h"

#include <random>

namespace saccade::server {
namespace {

double Random(double min, double max) {
  thread_local std::minstd_rand random{std::random_device()()};
  return std::uniform_real_distribution<double>(min, max)(random);
}

}  // namespace

absl::Duration SpreadAge(const HttpLimits& limits) {
  if (limits.max_connection_age == absl::InfiniteDuration()) return absl::InfiniteDuration();
  return limits.max_connection_age * Random(0.9, 1.1);
}

absl::Duration SpreadIdle(const HttpLimits& limits) {
  if (limits.idle_spread == 0) return limits.idle_timeout;
  return limits.idle_timeout * Random(1, 1 + limits.idle_spread);
}

}  // namespace saccade::server
