// Random numbers that are equal on every machine. The distributions of the standard library are not.
#pragma once

#include <cstdint>
#include <vector>

namespace saccade::server::simulation {

// xoshiro256++. Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t Bits();

  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1.0p-53; }

  // Uniform in [0, n). REQUIRES: n > 0.
  int64_t Below(int64_t n) { return static_cast<int64_t>(Uniform() * static_cast<double>(n)); }

  bool Chance(double probability) { return Uniform() < probability; }

  // Mean 1.
  double Exponential();

  double Normal();

  // Mean 1 and the given coefficient of variation. REQUIRES: cv > 0.
  double Gamma(double cv);

 private:
  uint64_t state_[4];
};

// Draws an index with a probability proportional to its weight.
class Choice {
 public:
  // REQUIRES: `weights` is not empty, none is negative, and not all are zero.
  explicit Choice(const std::vector<double>& weights);

  int operator()(Random& random) const;

 private:
  std::vector<double> up_to_;
};

// Weights 1, 1/2, .. 1/n.
std::vector<double> ZipfWeights(int n);

}  // namespace saccade::server::simulation
