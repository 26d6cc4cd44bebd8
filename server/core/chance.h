// A random decision with a given probability.
#pragma once

#include <random>

namespace saccade::server {

// Returns true with `probability`, which is 0 to 1. Thread-safe.
inline bool RandomlyTrue(double probability) {
  if (probability >= 1) return true;
  if (probability <= 0) return false;
  thread_local std::minstd_rand generator{std::random_device()()};
  return std::uniform_real_distribution<double>(0, 1)(generator) < probability;
}

}  // namespace saccade::server
