#include "server/simulation/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace saccade::server::simulation {
namespace {

// splitmix64, used to fill the state from a seed.
uint64_t NextSeed(uint64_t& seed) {
  seed += 0x9e3779b97f4a7c15;
  uint64_t z = seed;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) word = NextSeed(seed);
}

uint64_t Random::Bits() {
  const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::Exponential() { return -std::log1p(-Uniform()); }

double Random::Normal() { return std::sqrt(2 * Exponential()) * std::cos(2 * std::numbers::pi * Uniform()); }

// Marsaglia and Tsang's method. A shape below 1 is reduced to shape + 1 by a power of a uniform number.
double Random::Gamma(double cv) {
  if (cv == 1) return Exponential();
  const double shape = 1 / (cv * cv);
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  double value = 0;
  while (true) {
    const double x = Normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - Uniform();
    if (std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) {
      value = d * v;
      break;
    }
  }
  if (shape < 1) value *= std::pow(1 - Uniform(), 1 / shape);
  return value / shape;
}

Choice::Choice(const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) up_to_.push_back(sum += weight);
}

int Choice::operator()(Random& random) const {
  if (up_to_.size() == 1) return 0;
  const double at = random.Uniform() * up_to_.back();
  const auto found = std::upper_bound(up_to_.begin(), up_to_.end() - 1, at);
  return static_cast<int>(found - up_to_.begin());
}

std::vector<double> ZipfWeights(int n) {
  std::vector<double> weights(n);
  for (int i = 0; i < n; ++i) weights[i] = 1.0 / (i + 1);
  return weights;
}

}  // namespace saccade::server::simulation
