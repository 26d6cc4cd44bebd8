// Helpers for the tests without LibTorch: random problems of every kind, and the formulas in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

#include "kernels/common/testing/below_tensors.h"
#include "kernels/common/testing/test_map.h"
#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

struct ExpattTestConfig {
  ExpattKind kind = ExpattKind::kGaussian;
  int64_t batch = 1;
  int64_t channels = 5;
  int64_t map_channels = 0;  // 0: no matrix before the map
  int64_t out_channels = 0;  // 0: no matrix after the map
  bool bias = false;
  int64_t height = 5;
  int64_t width = 7;
  double sigma = 0.75;
  bool channels_last = false;
  std::vector<int64_t> valid = {};
};

inline std::ostream& operator<<(std::ostream& out, const ExpattTestConfig& c) {
  return out << "kind=" << static_cast<int>(c.kind) << " " << c.batch << "x" << c.channels << "x" << c.height
             << "x" << c.width << " map=" << c.map_channels << " out=" << c.out_channels << " bias=" << c.bias
             << " sigma=" << c.sigma << " channels_last=" << c.channels_last
             << " padded=" << !c.valid.empty();
}

inline constexpr ExpattKind kExpattKinds[] = {ExpattKind::kConstant,
                                              ExpattKind::kLinear,
                                              ExpattKind::kCosine,
                                              ExpattKind::kGaussian,
                                              ExpattKind::kExponentialEuclidean,
                                              ExpattKind::kExponentialManhattan};

// Small problems of every kind: one position, lines, tails, matrices on either side, radii, padding, an empty
// sample.
inline std::vector<ExpattTestConfig> ExpattTestConfigs() {
  std::vector<ExpattTestConfig> configs;
  for (const ExpattKind kind : kExpattKinds) {
    const auto add = [&](ExpattTestConfig config) {
      config.kind = kind;
      configs.push_back(config);
    };
    add({.channels = 1, .height = 1, .width = 1});
    add({.channels = 3, .height = 1, .width = 19, .sigma = 0.2});
    add({.batch = 2, .channels = 9, .height = 23, .width = 1, .channels_last = true});
    add({.batch = 2, .channels = 17, .height = 14, .width = 14});
    add({.channels = 2, .height = 21, .width = 33, .sigma = 0.05, .channels_last = true});
    add({.channels = 12, .map_channels = 5, .bias = true, .height = 9, .width = 11});
    add({.batch = 2,
         .channels = 4,
         .out_channels = 11,
         .bias = true,
         .height = 8,
         .width = 10,
         .channels_last = true});
    add({.channels = 10, .map_channels = 3, .out_channels = 12, .bias = true, .height = 7, .width = 13});
    add({.batch = 4, .channels = 3, .height = 12, .width = 18, .valid = {12, 18, 5, 17, 0, 3, 1, 1}});
    add({.batch = 2,
         .channels = 6,
         .map_channels = 2,
         .out_channels = 7,
         .bias = true,
         .height = 9,
         .width = 12,
         .channels_last = true,
         .valid = {8, 11, 9, 4}});
  }
  return configs;
}

// The arrays of one problem with random values, and the expected result.
template <typename T>
class ExpattTestCase {
 public:
  using A = Accumulate<T>;

  ExpattTestCase(const ExpattTestConfig& config, unsigned seed)
      : config_(config),
        map_channels_(config.map_channels == 0 ? config.channels : config.map_channels),
        out_channels_(config.out_channels == 0 ? map_channels_ : config.out_channels),
        positions_(config.height * config.width),
        extent_(ExtentOf({config.height, config.width}, config_.valid)) {
    std::mt19937 random(seed);
    x_ = TestMap<T>(random, config.batch, config.channels, extent_, config.channels_last);
    before_ = TestWeights<T>(random, config.map_channels * config.channels, 2);
    after_ = TestWeights<T>(random, config.out_channels * map_channels_, 2);
    bias_ = TestWeights<T>(random, out_channels_, 1);
    out_ = TestMap<T>::Unwritten(config.batch, out_channels_, extent_, config.channels_last);
  }
  ExpattTestCase(const ExpattTestCase&) = delete;
  ExpattTestCase& operator=(const ExpattTestCase&) = delete;

  ExpattProblem Problem() {
    ExpattProblem p;
    p.kind = config_.kind;
    p.batch = config_.batch;
    p.channels = config_.channels;
    p.map_channels = map_channels_;
    p.out_channels = out_channels_;
    p.dtype = kDtypeOf<T>;
    p.extent = extent_;
    p.x = x_.View();
    p.out = out_.Output();
    p.before = config_.map_channels == 0 ? nullptr : before_.data();
    p.after = config_.out_channels == 0 ? nullptr : after_.data();
    p.bias = config_.bias ? bias_.data() : nullptr;
    p.sigma = config_.sigma;
    return p;
  }

  // Returns the relative L2 distance of the result from the formulas, with zeros in the padding.
  double Error() const {
    return RelativeDistance(out_, config_.batch, out_channels_, positions_,
                            [this](int64_t b) { return Expected(b); });
  }

  const std::vector<T>& out() const { return out_.values(); }

 private:
  // G of two positions: the paper's equations 7 to 12.
  double G(int64_t b, int64_t i, int64_t j) const {
    const bool padded = !config_.valid.empty();
    const auto h = static_cast<double>(padded ? config_.valid[2 * b] : config_.height);
    const auto w = static_cast<double>(padded ? config_.valid[2 * b + 1] : config_.width);
    const int64_t rows = i / config_.width - j / config_.width;
    const auto dy = static_cast<double>(rows);
    const auto dx = static_cast<double>(i % config_.width - j % config_.width);
    const double s = config_.sigma;
    switch (config_.kind) {
      case ExpattKind::kConstant:
        return 1;
      case ExpattKind::kLinear:
        return 1 - std::sqrt(dx * dx + dy * dy) / std::sqrt(h * h + w * w);
      case ExpattKind::kCosine:
        return 0.5 * (1 + std::cos(std::sqrt(dx * dx + dy * dy) / std::sqrt(h * h + w * w) *
                                   3.14159265358979323846));
      case ExpattKind::kGaussian:
        return std::exp((dx / w * dx / w + dy / h * dy / h) / (-2 * s * s));
      case ExpattKind::kExponentialEuclidean:
        return std::exp(std::sqrt(dx / w * dx / w + dy / h * dy / h) / -s);
      case ExpattKind::kExponentialManhattan:
        return std::exp((std::abs(dx) / w + std::abs(dy) / h) / -s);
    }
    return 0;
  }

  // Computes one step after the other: values, the whole map, rows divided by their sums, and the output's
  // transform.
  std::vector<double> Expected(int64_t b) const {
    std::vector<double> out(out_channels_ * positions_, 0.0);
    const std::vector<int64_t> valid = ValidPositions(extent_, b);
    std::vector<double> values(map_channels_ * positions_, 0.0);
    for (int64_t c = 0; c < map_channels_; ++c) {
      for (const int64_t n : valid) {
        double& value = values[c * positions_ + n];
        if (config_.map_channels == 0) value = x_(b, c, n);
        for (int64_t d = 0; d < config_.channels && config_.map_channels != 0; ++d) {
          value += static_cast<double>(before_[c * config_.channels + d]) * x_(b, d, n);
        }
      }
    }
    std::vector<double> mapped(map_channels_);
    for (const int64_t i : valid) {
      double sum = 0;
      std::fill(mapped.begin(), mapped.end(), 0.0);
      for (const int64_t j : valid) {
        const double weight = G(b, i, j) + 1;
        sum += weight;
        for (int64_t c = 0; c < map_channels_; ++c) mapped[c] += weight * values[c * positions_ + j];
      }
      for (int64_t c = 0; c < out_channels_; ++c) {
        double& y = out[c * positions_ + i];
        if (config_.bias) y += static_cast<double>(bias_[c]);
        if (config_.out_channels == 0) y += mapped[c] / sum;
        for (int64_t d = 0; d < map_channels_ && config_.out_channels != 0; ++d) {
          y += static_cast<double>(after_[c * map_channels_ + d]) * mapped[d] / sum;
        }
      }
    }
    return out;
  }

  const ExpattTestConfig config_;
  const int64_t map_channels_, out_channels_, positions_;
  const Extent extent_;  // points into config_
  TestMap<T> x_, out_;
  std::vector<A> before_, after_, bias_;
};

}  // namespace saccade::kernels
