// Helpers for the tests without LibTorch: random problems of every kind, and the formulas in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/testing/below_tensors.h"
#include "kernels/common/testing/test_map.h"
#include "kernels/kao/kao_problem.h"

namespace saccade::kernels {

enum class KaoMemory { kContiguous, kChannelsLast, kTransposed };

struct KaoTestConfig {
  KaoKind kind = KaoKind::kMapQueries;
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t channels = 8;        // of x, or of q and k
  int64_t key_channels = 8;    // differ from `channels` only with weights "qk"
  int64_t value_channels = 8;  // differ from `channels` only with weights "v", or outside the module
  std::vector<int64_t> extent = {5, 7};
  bool module = true;
  std::string weights =
      "";  // which are given: q, k, v matrices; Q, V biases; c(oefficients), s(cale), (s)h(ift)
  bool residual = false;
  KaoMemory memory = KaoMemory::kContiguous;
  std::vector<int64_t> valid = {};

  bool Has(char weight) const { return weights.find(weight) != std::string::npos; }
};

inline std::ostream& operator<<(std::ostream& out, const KaoTestConfig& c) {
  return out << (c.kind == KaoKind::kMapQueries ? "kv " : "qkv ") << c.batch << "x" << c.channels << "x"
             << c.extent[0] << "x" << c.extent[1] << " heads=" << c.heads << " keys=" << c.key_channels
             << " values=" << c.value_channels << " module=" << c.module << " weights=" << c.weights
             << " residual=" << c.residual << " memory=" << static_cast<int>(c.memory)
             << " padded=" << !c.valid.empty();
}

// Small problems of every kind: one position, a single row and column, tails, folded and unfolded queries,
// padding, a sample without positions.
inline std::vector<KaoTestConfig> KaoTestConfigs() {
  std::vector<KaoTestConfig> configs;
  for (const KaoKind kind : {KaoKind::kMapQueries, KaoKind::kAverageQueries}) {
    for (const KaoMemory memory :
         {KaoMemory::kContiguous, KaoMemory::kChannelsLast, KaoMemory::kTransposed}) {
      const auto add = [&](KaoTestConfig config) {
        config.kind = kind;
        config.memory = memory;
        configs.push_back(config);
      };
      add({.batch = 2,
           .heads = 3,
           .channels = 12,
           .key_channels = 12,
           .value_channels = 18,
           .extent = {5, 18},
           .module = false,
           .weights = "c"});
      // On the CPU the first sample has too many keys to fold the queries' transform, the second few enough.
      add({.batch = 3,
           .heads = 2,
           .channels = 16,
           .key_channels = 20,
           .value_channels = 16,
           .extent = {9, 20},
           .weights = "qkcV",
           .residual = true,
           .valid = {9, 20, 5, 17, 0, 3}});
      if (memory == KaoMemory::kTransposed) continue;
      add({.channels = 1, .key_channels = 1, .value_channels = 1, .extent = {1, 1}, .residual = true});
      add({.batch = 2, .heads = 2, .channels = 6, .key_channels = 6, .value_channels = 6, .extent = {1, 19}});
      // Folded, with biases.
      add({.heads = 2,
           .channels = 22,
           .key_channels = 70,
           .value_channels = 22,
           .extent = {4, 9},
           .weights = "qkvQVcsh",
           .residual = true});
      // Not folded.
      add({.heads = 2,
           .channels = 24,
           .key_channels = 6,
           .value_channels = 10,
           .extent = {11, 13},
           .weights = "qkvQVcsh"});
      add({.heads = 3,
           .channels = 9,
           .key_channels = 9,
           .value_channels = 9,
           .extent = {13, 5},
           .weights = "Qs"});
      add({.channels = 70,
           .key_channels = 70,
           .value_channels = 70,
           .extent = {11, 3},
           .weights = "vh",
           .residual = true});
      add({.batch = 2,
           .channels = 20,
           .key_channels = 20,
           .value_channels = 4,
           .extent = {13, 9},
           .module = false,
           .valid = {13, 8, 12, 9}});
    }
  }
  return configs;
}

// The arrays of one problem with random values, and the expected result.
template <typename T>
class KaoTestCase {
 public:
  using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using Matrix = std::vector<std::vector<double>>;  // [channel][position or average]

  KaoTestCase(const KaoTestConfig& config, unsigned seed) : config_(config), random_(seed) {
    const int64_t channels = config.channels;
    const double narrow = std::sqrt(static_cast<double>(channels));
    q_ = RandomMap(channels);
    k_ = config.module ? q_ : RandomMap(channels);
    v_ = config.module ? q_ : RandomMap(config.value_channels);
    query_weight_ = RandomWeights('q', config.key_channels * channels, narrow);
    key_weight_ = RandomWeights('k', config.key_channels * channels, narrow);
    value_weight_ = RandomWeights('v', config.value_channels * channels, narrow);
    query_bias_ = RandomWeights('Q', config.key_channels, 1);
    value_bias_ = RandomWeights('V', config.value_channels, 1);
    coefficient_scale_ = RandomWeights('c', config.heads, 1);
    scale_ = RandomWeights('s', config.value_channels, 1);
    shift_ = RandomWeights('h', config.value_channels, 1);
    out_.assign(config.batch * config.value_channels * positions(),
                T(std::numeric_limits<float>::quiet_NaN()));
  }

  int64_t rows() const { return config_.extent[0]; }
  int64_t columns() const { return config_.extent[1]; }
  int64_t positions() const { return rows() * columns(); }

  KaoProblem Problem() {
    KaoProblem p;
    p.kind = config_.kind;
    p.batch = config_.batch;
    p.heads = config_.heads;
    p.dtype = kDtypeOf<T>;
    p.extent = ExtentOf(config_.extent, config_.valid);
    p.query_map_channels = config_.channels;
    p.value_map_channels = config_.module ? config_.channels : config_.value_channels;
    p.key_channels = config_.key_channels;
    p.value_channels = config_.value_channels;
    p.q = MapOf<FeatureMap>(q_.data(), config_.channels, config_.memory);
    p.k = MapOf<FeatureMap>(config_.module ? q_.data() : k_.data(), config_.channels, config_.memory);
    p.v = MapOf<FeatureMap>(config_.module ? q_.data() : v_.data(), p.value_map_channels, config_.memory);
    p.out = MapOf<OutputMap>(out_.data(), config_.value_channels, OutMemory());
    const auto pointer = [](const std::vector<A>& weights) {
      return weights.empty() ? nullptr : weights.data();
    };
    p.query_weight = pointer(query_weight_);
    p.key_weight = pointer(key_weight_);
    p.value_weight = pointer(value_weight_);
    p.query_bias = pointer(query_bias_);
    p.value_bias = pointer(value_bias_);
    p.coefficient_scale = pointer(coefficient_scale_);
    p.scale = pointer(scale_);
    p.shift = pointer(shift_);
    p.residual = config_.residual;
    return p;
  }

  // Returns the relative L2 distance of the result from the formulas.
  double Error() const {
    double difference = 0;
    double norm = 0;
    for (int64_t b = 0; b < config_.batch; ++b) {
      const Matrix expected = Expected(b);
      for (int64_t c = 0; c < config_.value_channels; ++c) {
        for (int64_t n = 0; n < positions(); ++n) {
          const double got =
              static_cast<double>(static_cast<A>(out_[At(config_.value_channels, b, c, n, OutMemory())]));
          difference += (got - expected[c][n]) * (got - expected[c][n]);
          norm += expected[c][n] * expected[c][n];
        }
      }
    }
    return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
  }

  std::vector<T>& out() { return out_; }

  // Returns one sample of this case, cropped to its valid extent.
  KaoTestCase Alone(int64_t sample) const {
    KaoTestConfig config = config_;
    config.batch = 1;
    config.extent = {ValidSize(sample, 0), ValidSize(sample, 1)};
    config.valid.clear();
    KaoTestCase alone = *this;
    alone.config_ = config;
    alone.q_ = Cropped(q_, config_.channels, sample, alone);
    alone.k_ = Cropped(k_, config_.channels, sample, alone);
    alone.v_ = Cropped(v_, config_.module ? config_.channels : config_.value_channels, sample, alone);
    alone.out_.assign(config_.value_channels * alone.positions(), T(std::numeric_limits<float>::quiet_NaN()));
    return alone;
  }

  // Returns true if, after both have run, sample `sample` of this result equals the result of `alone` bit for
  // bit.
  bool Holds(const KaoTestCase& alone, int64_t sample) const {
    for (int64_t c = 0; c < config_.value_channels; ++c) {
      for (int64_t n = 0; n < alone.positions(); ++n) {
        const T& there = alone.out_[alone.At(config_.value_channels, 0, c, n, OutMemory())];
        const T& here = out_[At(config_.value_channels, sample, c, Position(n, alone), OutMemory())];
        if (__builtin_memcmp(&there, &here, sizeof(T)) != 0) return false;
      }
    }
    return true;
  }

 private:
  // Returns the position in this image of position n of a smaller one.
  int64_t Position(int64_t n, const KaoTestCase& smaller) const {
    return n / smaller.columns() * columns() + n % smaller.columns();
  }
  std::vector<T> Cropped(const std::vector<T>& x, int64_t channels, int64_t sample,
                         const KaoTestCase& to) const {
    std::vector<T> cropped(channels * to.positions());
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t n = 0; n < to.positions(); ++n) {
        cropped[to.At(channels, 0, c, n, config_.memory)] =
            x[At(channels, sample, c, Position(n, to), config_.memory)];
      }
    }
    return cropped;
  }

  // Returns a random map with NaN outside the valid extent.
  std::vector<T> RandomMap(int64_t channels) {
    std::normal_distribution<float> normal(0.2f, 1.0f);
    std::vector<T> values(config_.batch * channels * positions());
    for (T& value : values) value = T(normal(random_));
    for (int64_t b = 0; b < config_.batch; ++b) {
      for (int64_t n = 0; n < positions(); ++n) {
        if (n / columns() < ValidSize(b, 0) && n % columns() < ValidSize(b, 1)) continue;
        for (int64_t c = 0; c < channels; ++c) {
          values[At(channels, b, c, n, config_.memory)] = T(std::numeric_limits<float>::quiet_NaN());
        }
      }
    }
    return values;
  }
  std::vector<A> RandomWeights(char which, int64_t count, double divisor) {
    std::normal_distribution<double> normal(0.1, 1.0);
    std::vector<A> values(config_.Has(which) ? count : 0);
    for (A& value : values) value = static_cast<A>(normal(random_) / divisor);
    return values;
  }

  // Results are always dense.
  KaoMemory OutMemory() const {
    return config_.memory == KaoMemory::kTransposed ? KaoMemory::kContiguous : config_.memory;
  }
  template <typename Map, typename Pointer>
  Map MapOf(Pointer data, int64_t channels, KaoMemory memory) const {
    Map map;
    map.data = data;
    map.batch_stride = channels * positions();
    map.channel_stride = memory == KaoMemory::kChannelsLast ? 1 : positions();
    const int64_t step = memory == KaoMemory::kChannelsLast ? channels : 1;
    const bool transposed = memory == KaoMemory::kTransposed;
    map.spatial_stride[1] = transposed ? 1 : columns() * step;
    map.spatial_stride[2] = transposed ? rows() : step;
    return map;
  }
  int64_t At(int64_t channels, int64_t b, int64_t c, int64_t n, KaoMemory memory) const {
    const auto map = MapOf<FeatureMap>(static_cast<const void*>(nullptr), channels, memory);
    return b * map.batch_stride + c * map.channel_stride + n / columns() * map.spatial_stride[1] +
           n % columns() * map.spatial_stride[2];
  }
  double Value(const std::vector<T>& x, int64_t channels, int64_t b, int64_t c, int64_t n) const {
    return static_cast<double>(static_cast<A>(x[At(channels, b, c, n, config_.memory)]));
  }
  int64_t ValidSize(int64_t sample, int dim) const {
    return config_.valid.empty() ? config_.extent[dim] : config_.valid[sample * 2 + dim];
  }

  // Returns weight x + bias at every position; NaN positions stay NaN.
  Matrix Transformed(const std::vector<T>& x, int64_t channels, int64_t b, const std::vector<A>& weight,
                     const std::vector<A>& bias, int64_t out_channels) const {
    Matrix out(out_channels, std::vector<double>(positions(), 0.0));
    for (int64_t c = 0; c < out_channels; ++c) {
      for (int64_t n = 0; n < positions(); ++n) {
        double sum = bias.empty() ? 0.0 : bias[c];
        if (weight.empty()) {
          sum += Value(x, channels, b, c, n);
        } else {
          for (int64_t d = 0; d < channels; ++d)
            sum += weight[c * channels + d] * Value(x, channels, b, d, n);
        }
        out[c][n] = sum;
      }
    }
    return out;
  }

  // Returns the column means, then the row means, over valid positions.
  Matrix Averages(const Matrix& map, int64_t b) const {
    const int64_t h = ValidSize(b, 0);
    const int64_t w = ValidSize(b, 1);
    Matrix means(map.size(), std::vector<double>(w + h, 0.0));
    for (size_t c = 0; c < map.size(); ++c) {
      for (int64_t r = 0; r < h; ++r) {
        for (int64_t j = 0; j < w; ++j) {
          means[c][j] += map[c][r * columns() + j] / static_cast<double>(h);
          means[c][w + r] += map[c][r * columns() + j] / static_cast<double>(w);
        }
      }
    }
    return means;
  }

  // Returns the attention result of query `n` of `queries`, by channel.
  std::vector<double> Attended(const Matrix& queries, int64_t n, const Matrix& keys,
                               const Matrix& values) const {
    std::vector<double> out(values.size());
    const int64_t count = static_cast<int64_t>(keys[0].size());
    const auto head_keys = static_cast<int64_t>(keys.size()) / config_.heads;
    const auto head_values = static_cast<int64_t>(values.size()) / config_.heads;
    for (int64_t head = 0; head < config_.heads; ++head) {
      std::vector<double> weights(count, 0.0);
      for (int64_t j = 0; j < count; ++j) {
        for (int64_t c = head * head_keys; c < (head + 1) * head_keys; ++c)
          weights[j] += keys[c][j] * queries[c][n];
        if (!coefficient_scale_.empty()) weights[j] *= coefficient_scale_[head];
      }
      const double max = *std::max_element(weights.begin(), weights.end());
      double total = 0;
      for (double& weight : weights) total += weight = std::exp(weight - max);
      for (int64_t c = head * head_values; c < (head + 1) * head_values; ++c) {
        for (int64_t j = 0; j < count; ++j) out[c] += values[c][j] * weights[j] / total;
      }
    }
    return out;
  }

  // Follows the paper directly: transforms maps position by position, then averages them.
  Matrix Expected(int64_t b) const {
    Matrix out(config_.value_channels, std::vector<double>(positions(), 0.0));
    const int64_t h = ValidSize(b, 0);
    const int64_t w = ValidSize(b, 1);
    if (h * w == 0) return out;
    const int64_t value_channels = config_.module ? config_.channels : config_.value_channels;
    const Matrix q = Transformed(q_, config_.channels, b, query_weight_, query_bias_, config_.key_channels);
    const Matrix keys =
        Averages(Transformed(k_, config_.channels, b, key_weight_, {}, config_.key_channels), b);
    const Matrix values =
        Averages(Transformed(v_, value_channels, b, value_weight_, value_bias_, config_.value_channels), b);
    const Matrix queries = Averages(q, b);
    for (int64_t n = 0; n < positions(); ++n) {
      const int64_t row = n / columns();
      const int64_t column = n % columns();
      if (row >= h || column >= w) continue;
      std::vector<double> heard;
      if (config_.kind == KaoKind::kMapQueries) {
        heard = Attended(q, n, keys, values);
      } else {
        heard = Attended(queries, column, keys, values);
        const std::vector<double> of_row = Attended(queries, w + row, keys, values);
        for (size_t c = 0; c < heard.size(); ++c) heard[c] += of_row[c];
      }
      for (int64_t c = 0; c < config_.value_channels; ++c) {
        double y = heard[c];
        if (!scale_.empty()) y *= scale_[c];
        if (!shift_.empty()) y += shift_[c];
        if (config_.residual) y += Value(q_, config_.channels, b, c, n);
        out[c][n] = y;
      }
    }
    return out;
  }

  KaoTestConfig config_;
  std::mt19937 random_;
  std::vector<T> q_, k_, v_, out_;
  std::vector<A> query_weight_, key_weight_, value_weight_, query_bias_, value_bias_, coefficient_scale_,
      scale_, shift_;
};

}  // namespace saccade::kernels
