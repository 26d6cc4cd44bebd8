// Helpers for the tests without LibTorch: random problems of every kind, and the formulas in float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

#include "kernels/common/testing/below_tensors.h"
#include "kernels/common/testing/test_map.h"
#include "kernels/efficient_attention/efficient_attention_problem.h"

namespace saccade::kernels {

struct EaTestConfig {
  int64_t batch = 1;
  int64_t channels = 8;  // of x; 0 for the bare operator
  int64_t keys = 4;
  int64_t values = 6;
  int64_t out = 0;  // 0: no output projection
  int64_t heads = 1;
  std::vector<int64_t> extent = {5, 7};
  bool softmax = true;
  bool biases = true;
  bool residual = false;
  bool channels_last = false;
  std::vector<int64_t> valid = {};
};

inline std::ostream& operator<<(std::ostream& out, const EaTestConfig& c) {
  out << c.batch << "x" << c.channels;
  for (const int64_t size : c.extent) out << "x" << size;
  return out << " keys=" << c.keys << " values=" << c.values << " out=" << c.out << " heads=" << c.heads
             << " softmax=" << c.softmax << " biases=" << c.biases << " residual=" << c.residual
             << " channels_last=" << c.channels_last << " padded=" << !c.valid.empty();
}

// Small problems of every kind: one position, tails, volumes, also of height one, lines, several splits,
// padding, an empty sample.
inline std::vector<EaTestConfig> EaTestConfigs() {
  std::vector<EaTestConfig> configs;
  for (const bool channels_last : {false, true}) {
    for (const bool softmax : {false, true}) {
      const auto add = [&](EaTestConfig config) {
        config.channels_last = channels_last;
        config.softmax = softmax;
        configs.push_back(config);
      };
      add({.channels = 1, .keys = 1, .values = 1, .extent = {1}});
      add({.channels = 0, .keys = 1, .values = 1, .extent = {1, 1}});
      add({.batch = 2,
           .channels = 24,
           .keys = 6,
           .values = 9,
           .out = 24,
           .heads = 3,
           .extent = {9, 13},
           .residual = true});
      add({.batch = 2,
           .channels = 18,
           .keys = 20,
           .values = 18,
           .heads = 2,
           .extent = {3, 5, 7},
           .biases = false,
           .residual = true});
      add({.channels = 7, .keys = 17, .values = 5, .out = 33, .extent = {131}});
      add({.batch = 2, .channels = 0, .keys = 12, .values = 20, .heads = 4, .extent = {11, 17}});
      // Two splits of the CPU's positions, with and without padding.
      add({.channels = 12,
           .keys = 16,
           .values = 8,
           .out = 12,
           .heads = 2,
           .extent = {23, 41},
           .residual = true});
      add({.batch = 3,
           .channels = 16,
           .keys = 8,
           .values = 8,
           .out = 16,
           .heads = 2,
           .extent = {12, 30},
           .residual = true,
           .valid = {12, 30, 5, 17, 0, 3}});
      // Fewer valid positions that need more splits than the whole map.
      add({.channels = 4, .keys = 3, .values = 4, .extent = {56, 57}, .residual = true, .valid = {56, 54}});
      add({.batch = 2,
           .channels = 0,
           .keys = 5,
           .values = 7,
           .extent = {4, 6, 20},
           .valid = {3, 5, 19, 4, 6, 20}});
      // Volumes whose planes have one line: padding lies between neighbouring planes.
      add({.batch = 2,
           .channels = 16,
           .keys = 8,
           .values = 8,
           .out = 16,
           .extent = {6, 1, 24},
           .residual = true,
           .valid = {6, 1, 17, 5, 1, 16}});
    }
  }
  return configs;
}

// The arrays of one problem with random values, and the expected result.
template <typename T>
class EaTestCase {
 public:
  using A = Accumulate<T>;

  EaTestCase(const EaTestConfig& config, unsigned seed)
      : config_(config), random_(seed), extent_(ExtentOf(config_.extent, config_.valid)) {
    const bool module = config.channels > 0;
    const auto map = [&](int64_t channels) {
      return TestMap<T>(random_, config_.batch, channels, extent_, config_.channels_last);
    };
    const auto matrix = [&](int64_t rows, int64_t columns) {
      return TestWeights<T>(random_, rows * columns, std::sqrt(static_cast<double>(columns)));
    };
    if (module) {
      x_ = map(config.channels);
      query_weight_ = matrix(config.keys, config.channels);
      key_weight_ = matrix(config.keys, config.channels);
      value_weight_ = matrix(config.values, config.channels);
      out_weight_ = matrix(config.out, config.values);
      query_bias_ = TestWeights<T>(random_, config.keys, 1);
      key_bias_ = TestWeights<T>(random_, config.keys, 1);
      value_bias_ = TestWeights<T>(random_, config.values, 1);
      out_bias_ = TestWeights<T>(random_, config.out, 1);
    } else {
      q_ = map(config.keys);
      k_ = map(config.keys);
      v_ = map(config.values);
    }
    out_ = TestMap<T>::Unwritten(config.batch, out_channels(), extent_, config.channels_last);
  }

  EfficientAttentionProblem Problem() {
    EfficientAttentionProblem p;
    p.batch = config_.batch;
    p.extent = extent_;
    p.dtype = kDtypeOf<T>;
    p.heads = config_.heads;
    p.key_channels = config_.keys;
    p.value_channels = config_.values;
    p.softmax = config_.softmax;
    p.out = out_.Output();
    p.out_channels = out_channels();
    p.channels = config_.channels;
    if (config_.channels == 0) {
      p.q = q_.View();
      p.k = k_.View();
      p.v = v_.View();
      return p;
    }
    p.x = x_.View();
    p.residual = config_.residual;
    p.query_weight = query_weight_.data();
    p.key_weight = key_weight_.data();
    p.value_weight = value_weight_.data();
    if (config_.out > 0) p.out_weight = out_weight_.data();
    if (!config_.biases) return p;
    p.query_bias = query_bias_.data();
    p.key_bias = key_bias_.data();
    p.value_bias = value_bias_.data();
    if (config_.out > 0) p.out_bias = out_bias_.data();
    return p;
  }

  double Error() const {
    return RelativeDistance(out_, config_.batch, out_channels(), PositionsOf(extent_),
                            [this](int64_t b) { return Expected(b); });
  }

  const std::vector<T>& out() const { return out_.values(); }

 private:
  using Rows = std::vector<std::vector<double>>;  // [channels][valid positions]

  int64_t out_channels() const { return config_.out > 0 ? config_.out : config_.values; }

  Rows Read(const TestMap<T>& map, int64_t b, int64_t channels, const std::vector<int64_t>& at) const {
    Rows rows(static_cast<size_t>(channels));
    for (int64_t c = 0; c < channels; ++c) {
      for (const int64_t n : at) rows[c].push_back(map(b, c, n));
    }
    return rows;
  }

  Rows Project(const Rows& from, const std::vector<A>& weights, const std::vector<A>& bias,
               int64_t rows) const {
    Rows to(static_cast<size_t>(rows));
    const size_t positions = from.empty() ? 0 : from[0].size();
    for (int64_t r = 0; r < rows; ++r) {
      for (size_t n = 0; n < positions; ++n) {
        double sum = config_.biases ? bias[r] : 0;
        for (size_t c = 0; c < from.size(); ++c) sum += weights[r * from.size() + c] * from[c][n];
        to[r].push_back(sum);
      }
    }
    return to;
  }

  // The rho of equation 2: keys over positions, queries over a head's channels; or both divided by sqrt(N).
  void Normalize(Rows& q, Rows& k) const {
    const size_t positions = k[0].size();
    if (!config_.softmax) {
      for (Rows* rows : {&q, &k}) {
        for (auto& row : *rows) {
          for (double& value : row) value /= std::sqrt(static_cast<double>(positions));
        }
      }
      return;
    }
    for (auto& row : k) {
      double sum = 0;
      for (const double value : row) sum += std::exp(value);
      for (double& value : row) value = std::exp(value) / sum;
    }
    const size_t head = q.size() / config_.heads;
    for (size_t first = 0; first < q.size(); first += head) {
      for (size_t n = 0; n < positions; ++n) {
        double sum = 0;
        for (size_t c = first; c < first + head; ++c) sum += std::exp(q[c][n]);
        for (size_t c = first; c < first + head; ++c) q[c][n] = std::exp(q[c][n]) / sum;
      }
    }
  }

  // Computes rho(Q) (rho(K)^T V), head by head.
  Rows Attend(const Rows& q, const Rows& k, const Rows& v) const {
    const size_t positions = k[0].size();
    const size_t head_keys = k.size() / config_.heads, head_values = v.size() / config_.heads;
    Rows out(v.size(), std::vector<double>(positions, 0.0));
    for (size_t c = 0; c < v.size(); ++c) {
      const size_t first = c / head_values * head_keys;
      for (size_t j = first; j < first + head_keys; ++j) {
        double context = 0;
        for (size_t n = 0; n < positions; ++n) context += k[j][n] * v[c][n];
        for (size_t n = 0; n < positions; ++n) out[c][n] += context * q[j][n];
      }
    }
    return out;
  }

  std::vector<double> Expected(int64_t b) const {
    const int64_t positions = PositionsOf(extent_);
    std::vector<double> expected(static_cast<size_t>(out_channels() * positions), 0.0);
    const std::vector<int64_t> at = ValidPositions(extent_, b);
    if (at.empty()) return expected;
    Rows q, k, v, x;
    if (config_.channels > 0) {
      x = Read(x_, b, config_.channels, at);
      q = Project(x, query_weight_, query_bias_, config_.keys);
      k = Project(x, key_weight_, key_bias_, config_.keys);
      v = Project(x, value_weight_, value_bias_, config_.values);
    } else {
      q = Read(q_, b, config_.keys, at);
      k = Read(k_, b, config_.keys, at);
      v = Read(v_, b, config_.values, at);
    }
    Normalize(q, k);
    Rows out = Attend(q, k, v);
    if (config_.out > 0) out = Project(out, out_weight_, out_bias_, config_.out);
    for (int64_t c = 0; c < out_channels(); ++c) {
      for (size_t n = 0; n < at.size(); ++n) {
        expected[c * positions + at[n]] = out[c][n] + (config_.residual ? x[c][n] : 0.0);
      }
    }
    return expected;
  }

  EaTestConfig config_;
  std::mt19937 random_;
  Extent extent_;
  TestMap<T> q_, k_, v_, x_, out_;
  std::vector<A> query_weight_, key_weight_, value_weight_, out_weight_;
  std::vector<A> query_bias_, key_bias_, value_bias_, out_bias_;
};

}  // namespace saccade::kernels
