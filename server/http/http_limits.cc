#include "server/http/http_limits.h"

#include <random>

namespace saccade::server {

absl::Duration SpreadAge(const HttpLimits& limits) {
  if (limits.max_connection_age == absl::InfiniteDuration()) return absl::InfiniteDuration();
  thread_local std::minstd_rand random{std::random_device()()};
  return limits.max_connection_age * std::uniform_real_distribution<double>(0.9, 1.1)(random);
}

}  // namespace saccade::server
