// Helpers for the tests without LibTorch: random problems of every kind, and the formulas in float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <vector>

#include "kernels/common/testing/below_tensors.h"
#include "kernels/common/testing/test_map.h"
#include "kernels/sao/sao_problem.h"

namespace saccade::kernels {

struct SaoTestConfig {
  int64_t batch = 1;
  int64_t channels = 8;
  int64_t heads = 1;
  std::vector<int64_t> extent = {5, 7};
  bool module = true;
  bool shared = true;  // q, k and v are the same map; always true for the module
  bool global_term = true;
  bool residual = true;
  bool transforms = false;  // Q and K are transforms of x too; module only
  bool channels_last = false;
  std::vector<int64_t> valid = {};
};

inline std::ostream& operator<<(std::ostream& out, const SaoTestConfig& c) {
  out << c.batch << "x" << c.channels;
  for (const int64_t size : c.extent) out << "x" << size;
  return out << " heads=" << c.heads << " module=" << c.module << " shared=" << c.shared
             << " global=" << c.global_term << " residual=" << c.residual << " transforms=" << c.transforms
             << " channels_last=" << c.channels_last << " padded=" << !c.valid.empty();
}

// Small problems of every kind: one position, tails, volumes, lines, several splits, padding, an empty
// sample.
inline std::vector<SaoTestConfig> SaoTestConfigs() {
  std::vector<SaoTestConfig> configs;
  for (const bool channels_last : {false, true}) {
    const auto add = [&](SaoTestConfig config) {
      config.channels_last = channels_last;
      configs.push_back(config);
    };
    add({.channels = 1, .extent = {1}});
    add({.batch = 3, .channels = 12, .heads = 4, .extent = {7, 9}});
    add({.batch = 2, .channels = 38, .heads = 2, .extent = {13, 15}, .residual = false});
    add({.batch = 2, .channels = 36, .heads = 9, .extent = {3, 5, 7}, .global_term = false});
    add({.batch = 2, .channels = 24, .heads = 2, .extent = {131}, .module = false});
    add({.channels = 40, .heads = 4, .extent = {13, 17}, .module = false, .shared = false});
    add({.channels = 6,
         .heads = 3,
         .extent = {9, 11},
         .module = false,
         .shared = false,
         .global_term = false});
    add({.channels = 260, .heads = 2, .extent = {3, 5}});
    add({.batch = 2, .channels = 18, .heads = 3, .extent = {5, 9, 4}, .transforms = true});
    add({.channels = 12, .heads = 1, .extent = {13, 17}, .global_term = false, .transforms = true});
    add({.batch = 3, .channels = 16, .heads = 4, .extent = {12, 30}, .valid = {12, 30, 5, 17, 0, 3}});
    add({.batch = 2,
         .channels = 8,
         .heads = 2,
         .extent = {4, 6, 20},
         .module = false,
         .shared = false,
         .valid = {3, 5, 19, 4, 6, 20}});
  }
  return configs;
}

// The arrays of one problem with random values, and the expected result.
template <typename T>
class SaoTestCase {
 public:
  using A = std::conditional_t<std::is_same_v<T, double>, double, float>;

  SaoTestCase(const SaoTestConfig& config, unsigned seed) : config_(config), random_(seed) {
    positions_ = 1;
    for (const int64_t size : config.extent) positions_ *= size;
    const int64_t elements = config.batch * config.channels * positions_;
    q_ = Random(elements);
    k_ = config.shared || config.module ? q_ : Random(elements);
    v_ = config.shared || config.module ? q_ : Random(elements);
    w_ = RandomWeights(config.channels, 1);
    value_weight_ = RandomWeights(config.channels * config.channels, std::sqrt(config.channels));
    scale_ = RandomWeights(config.channels, static_cast<double>(positions_));
    shift_ = RandomWeights(config.channels, 1);
    query_scores_ = RandomWeights(config.heads * config.channels, std::sqrt(config.channels));
    key_scores_ = RandomWeights(config.heads * config.channels, std::sqrt(config.channels));
    PoisonPadding();
    out_.assign(elements, T(std::numeric_limits<float>::quiet_NaN()));
  }

  SaoProblem Problem() {
    SaoProblem p;
    p.batch = config_.batch;
    p.channels = config_.channels;
    p.heads = config_.heads;
    p.positions = positions_;
    p.extent = ExtentOf(config_.extent, config_.valid);
    const bool shared = config_.shared || config_.module;
    p.q = Map(q_);
    p.k = shared ? p.q : Map(k_);
    p.v = shared ? p.q : Map(v_);
    p.out = out_.data();
    p.channels_last = config_.channels_last;
    p.global_term = config_.global_term;
    p.w = w_.data();
    if (config_.module) {
      p.value_weight = value_weight_.data();
      p.scale = scale_.data();
      p.shift = shift_.data();
      p.residual = config_.residual;
      if (config_.transforms) {
        p.query_scores = query_scores_.data();
        p.key_scores = key_scores_.data();
      }
    }
    return p;
  }

  // Returns the relative L2 distance of the result from the formulas.
  double Error() const {
    return RelativeDistance(
        [this](int64_t b, int64_t c, int64_t n) {
          return static_cast<double>(static_cast<A>(out_[At(b, c, n)]));
        },
        config_.batch, config_.channels, positions_, [this](int64_t b) { return Expected(b); });
  }

  std::vector<T>& out() { return out_; }
  int64_t positions() const { return positions_; }

 private:
  std::vector<T> Random(int64_t count) {
    std::normal_distribution<float> normal(0.2f, 1.0f);
    std::vector<T> values;
    values.reserve(count);
    for (int64_t i = 0; i < count; ++i) values.push_back(T(normal(random_)));
    return values;
  }
  std::vector<A> RandomWeights(int64_t count, double divisor) {
    std::normal_distribution<double> normal(0.1, 1.0);
    std::vector<A> values(count);
    for (A& value : values) value = static_cast<A>(normal(random_) / divisor);
    return values;
  }
  FlatMap Map(const std::vector<T>& x) const {
    return {x.data(), config_.channels * positions_, config_.channels_last ? 1 : positions_,
            config_.channels_last ? config_.channels : 1};
  }
  int64_t At(int64_t b, int64_t c, int64_t n) const {
    return config_.channels_last ? (b * positions_ + n) * config_.channels + c
                                 : (b * config_.channels + c) * positions_ + n;
  }
  bool Valid(int64_t sample, int64_t position) const {
    if (config_.valid.empty()) return true;
    const int dims = static_cast<int>(config_.extent.size());
    for (int d = dims - 1; d >= 0; --d) {
      if (position % config_.extent[d] >= config_.valid[sample * dims + d]) return false;
      position /= config_.extent[d];
    }
    return true;
  }
  void PoisonPadding() {
    for (int64_t b = 0; b < config_.batch; ++b) {
      for (int64_t n = 0; n < positions_; ++n) {
        for (int64_t c = 0; c < config_.channels && !Valid(b, n); ++c) {
          for (auto* x : {&q_, &k_, &v_}) (*x)[At(b, c, n)] = T(std::numeric_limits<float>::quiet_NaN());
        }
      }
    }
  }
  double Value(const std::vector<T>& x, int64_t b, int64_t c, int64_t n) const {
    return static_cast<double>(static_cast<A>(x[At(b, c, n)]));
  }

  // Follows the paper directly: stores V and takes every sum position by position.
  std::vector<double> Expected(int64_t b) const {
    const int64_t channels = config_.channels;
    const int64_t head_channels = channels / config_.heads;
    std::vector<double> out(channels * positions_, 0.0);
    std::vector<int64_t> valid;
    for (int64_t n = 0; n < positions_; ++n) {
      if (Valid(b, n)) valid.push_back(n);
    }
    const auto score = [&](const std::vector<T>& x, const std::vector<A>& folded, int64_t head, int64_t n) {
      double sum = 0;
      for (int64_t c = 0; config_.transforms && c < channels; ++c)
        sum += folded[head * channels + c] * Value(x, b, c, n);
      if (config_.transforms) return sum;
      for (int64_t c = head * head_channels; c < (head + 1) * head_channels; ++c)
        sum += w_[c] * Value(x, b, c, n);
      return sum;
    };
    std::vector<std::vector<double>> q_scores(config_.heads), k_scores(config_.heads);
    for (int64_t head = 0; head < config_.heads; ++head) {
      for (const int64_t n : valid) {
        q_scores[head].push_back(score(q_, query_scores_, head, n));
        k_scores[head].push_back(score(k_, key_scores_, head, n));
      }
    }
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t head = c / head_channels;
      double sum = 0;
      double weighted = 0;
      for (size_t i = 0; i < valid.size(); ++i) {
        double value = 0;
        if (config_.module) {
          for (int64_t d = 0; d < channels; ++d)
            value += value_weight_[c * channels + d] * Value(v_, b, d, valid[i]);
        } else {
          value = Value(v_, b, c, valid[i]);
        }
        sum += value;
        weighted += config_.global_term ? value * k_scores[head][i] : 0.0;
      }
      for (size_t i = 0; i < valid.size(); ++i) {
        const double sao = sum * q_scores[head][i] + weighted;
        double y = config_.module ? scale_[c] * sao + shift_[c] : sao / static_cast<double>(valid.size());
        if (config_.module && config_.residual) y += Value(q_, b, c, valid[i]);
        out[c * positions_ + valid[i]] = y;
      }
    }
    return out;
  }

  SaoTestConfig config_;
  std::mt19937 random_;
  int64_t positions_;
  std::vector<T> q_, k_, v_, out_;
  std::vector<A> w_, value_weight_, scale_, shift_, query_scores_, key_scores_;
};

}  // namespace saccade::kernels
