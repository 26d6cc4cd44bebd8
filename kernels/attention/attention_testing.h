// Helpers for the tests without LibTorch: random problems of every kind, and the formulas in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/attention/attention_problem.h"
#include "kernels/common/bfloat16.h"
#include "kernels/common/testing/below_tensors.h"
#include "kernels/common/testing/test_map.h"

namespace saccade::kernels {

struct AttentionTestConfig {
  AttentionKind kind = AttentionKind::kSoftmax;
  int64_t batch = 1;
  int64_t channels = 8;  // of x; without `module` of q and k, and v then has value_channels
  int64_t heads = 1;
  std::vector<int64_t> extent = {5, 7};
  bool module = false;
  bool shared = false;  // q, k and v are the same map; always true for the module
  // The next members are of the module. key_channels, value_channels and out_channels: 0 for no transform.
  int64_t key_channels = 0;
  bool query_weight = true;  // only with key_channels, which always implies a key weight
  int64_t value_channels = 0;
  int64_t out_channels = 0;
  bool biases = false;
  bool affine = false;  // scale and shift
  bool residual = false;
  bool channels_last = false;
  std::vector<int64_t> valid = {};
};

inline std::ostream& operator<<(std::ostream& out, const AttentionTestConfig& c) {
  out << "kind=" << static_cast<int>(c.kind) << " " << c.batch << "x" << c.channels;
  for (const int64_t size : c.extent) out << "x" << size;
  return out << " heads=" << c.heads << " module=" << c.module << " shared=" << c.shared
             << " keys=" << c.key_channels << " query=" << c.query_weight << " values=" << c.value_channels
             << " out=" << c.out_channels << " biases=" << c.biases << " affine=" << c.affine
             << " residual=" << c.residual << " channels_last=" << c.channels_last
             << " padded=" << !c.valid.empty();
}

// Small problems of every kind: one position, tails, volumes, lines, several blocks of keys, padding, an
// empty sample, every fold of weights, and both more and fewer positions than channels.
inline std::vector<AttentionTestConfig> AttentionTestConfigs() {
  std::vector<AttentionTestConfig> configs;
  for (const auto kind : {AttentionKind::kSoftmax, AttentionKind::kPooled, AttentionKind::kMean}) {
    for (const bool channels_last : {false, true}) {
      const auto add = [&](AttentionTestConfig config) {
        config.kind = kind;
        config.channels_last = channels_last;
        configs.push_back(config);
      };
      add({.channels = 1, .extent = {1}});
      add({.batch = 2, .channels = 12, .heads = 3, .extent = {9, 11}, .value_channels = 6});
      add({.batch = 2, .channels = 8, .extent = {15, 19}, .shared = true, .value_channels = 8});
      add({.channels = 36, .heads = 2, .extent = {3, 5, 7}, .value_channels = 20});
      add({.channels = 20, .extent = {131}, .value_channels = 35});
      add({.batch = 3,
           .channels = 40,
           .heads = 2,
           .extent = {7, 13},
           .value_channels = 24,
           .valid = {7, 13, 3, 5, 0, 3}});
      add({.batch = 2,
           .channels = 24,
           .extent = {7, 7},
           .module = true,
           .value_channels = 24,
           .affine = true,
           .residual = true});
      add({.batch = 2,
           .channels = 21,
           .extent = {9, 10},
           .module = true,
           .key_channels = 10,
           .value_channels = 19,
           .out_channels = 21,
           .biases = true,
           .affine = true,
           .residual = true});
      add({.channels = 34,
           .heads = 3,
           .extent = {5, 3, 9},
           .module = true,
           .key_channels = 24,
           .value_channels = 36,
           .out_channels = 18,
           .biases = true});
      add({.channels = 20,
           .extent = {61},
           .module = true,
           .key_channels = 20,
           .query_weight = false,
           .value_channels = 44,
           .out_channels = 17,
           .biases = true,
           .affine = true});
      add({.batch = 2,
           .channels = 18,
           .heads = 2,
           .extent = {11, 12},
           .module = true,
           .key_channels = 18,
           .value_channels = 18,
           .biases = true,
           .residual = true,
           .valid = {11, 12, 8, 3}});
    }
  }
  return configs;
}

template <typename T>
constexpr Dtype DtypeOfElements() {
  if constexpr (std::is_same_v<T, float>) return Dtype::kFloat32;
  if constexpr (std::is_same_v<T, double>) return Dtype::kFloat64;
  return std::is_same_v<T, BFloat16> ? Dtype::kBFloat16 : Dtype::kFloat16;
}

// The arrays of one problem with random values, and the expected result.
template <typename T>
class AttentionTestCase {
 public:
  using A = std::conditional_t<std::is_same_v<T, double>, double, float>;

  AttentionTestCase(const AttentionTestConfig& config, unsigned seed) : config_(config), random_(seed) {
    positions_ = 1;
    for (const int64_t size : config.extent) positions_ *= size;
    const bool module = config.module;
    keys_ = module && config.key_channels > 0 ? config.key_channels : config.channels;
    values_ = config.value_channels > 0 ? config.value_channels : config.channels;
    out_channels_ = module && config.out_channels > 0 ? config.out_channels : values_;
    q_ = RandomMap(config.channels);
    k_ = module || config.shared ? q_ : RandomMap(config.channels);
    v_ = module || config.shared ? q_ : RandomMap(values_);
    if (module) {
      if (config.key_channels > 0) {
        key_weight_ = RandomWeights(keys_ * config.channels, std::sqrt(config.channels));
        if (config.query_weight)
          query_weight_ = RandomWeights(keys_ * config.channels, std::sqrt(config.channels));
      }
      if (config.value_channels > 0) {
        value_weight_ = RandomWeights(values_ * config.channels, std::sqrt(config.channels));
      }
      if (config.out_channels > 0) {
        out_weight_ = RandomWeights(out_channels_ * values_, std::sqrt(values_));
      }
      if (config.biases && !query_weight_.empty()) query_bias_ = RandomWeights(keys_, 1);
      if (config.biases && !key_weight_.empty()) key_bias_ = RandomWeights(keys_, 1);
      if (config.biases && !value_weight_.empty()) value_bias_ = RandomWeights(values_, 1);
      if (config.affine) {
        scale_ = RandomWeights(out_channels_, 1);
        shift_ = RandomWeights(out_channels_, 1);
      }
    }
    out_.assign(config.batch * out_channels_ * positions_, T(std::numeric_limits<float>::quiet_NaN()));
  }

  AttentionProblem Problem() {
    AttentionProblem p;
    const bool one_map = config_.module || config_.shared;
    p.kind = config_.kind;
    p.dtype = DtypeOfElements<T>();
    p.batch = config_.batch;
    p.heads = config_.heads;
    p.extent = ExtentOf(config_.extent, config_.valid);
    p.key_channels = keys_;
    p.value_channels = values_;
    p.out_channels = out_channels_;
    p.q = {Map(q_, config_.channels), config_.channels, DataOf(query_weight_), DataOf(query_bias_)};
    p.k = {Map(one_map ? q_ : k_, config_.channels), config_.channels, DataOf(key_weight_),
           DataOf(key_bias_)};
    const int64_t value_input = one_map ? config_.channels : values_;
    p.v = {Map(one_map ? q_ : v_, value_input), value_input, DataOf(value_weight_), DataOf(value_bias_)};
    p.logit_scale = LogitScale();
    p.out_weight = DataOf(out_weight_);
    p.scale = DataOf(scale_);
    p.shift = DataOf(shift_);
    if (config_.residual) p.residual = p.q.map;
    const FeatureMap out = Map(out_, out_channels_);
    p.out.data = out_.data();
    p.out.batch_stride = out.batch_stride;
    p.out.channel_stride = out.channel_stride;
    std::copy_n(out.spatial_stride, kMaxSpatialDims, p.out.spatial_stride);
    return p;
  }

  // Returns the relative L2 distance of the result from the formulas.
  double Error() const {
    return RelativeDistance(
        [this](int64_t b, int64_t c, int64_t n) { return Value(out_, out_channels_, b, c, n); },
        config_.batch, out_channels_, positions_, [this](int64_t b) { return Expected(b); });
  }

  std::vector<T>& out() { return out_; }

 private:
  using Rows = std::vector<std::vector<double>>;  // [channel][position]

  double LogitScale() const {
    return config_.kind == AttentionKind::kMean ? 1
                                                : 1 / std::sqrt(static_cast<double>(keys_ / config_.heads));
  }
  static const void* DataOf(const std::vector<A>& weights) {
    return weights.empty() ? nullptr : weights.data();
  }

  // Returns a random map with NaN outside the extent, which the operator must not read.
  std::vector<T> RandomMap(int64_t channels) {
    std::normal_distribution<float> normal(0.2f, 1.0f);
    std::vector<T> values(config_.batch * channels * positions_);
    for (int64_t b = 0; b < config_.batch; ++b) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t n = 0; n < positions_; ++n) {
          const float value = normal(random_);
          values[At(channels, b, c, n)] = T(Valid(b, n) ? value : std::numeric_limits<float>::quiet_NaN());
        }
      }
    }
    return values;
  }
  std::vector<A> RandomWeights(int64_t count, double divisor) {
    std::normal_distribution<double> normal(0.1, 1.0);
    std::vector<A> values(count);
    for (A& value : values) value = static_cast<A>(normal(random_) / divisor);
    return values;
  }
  FeatureMap Map(const std::vector<T>& x, int64_t channels) const {
    FeatureMap map;
    map.data = x.data();
    map.batch_stride = channels * positions_;
    map.channel_stride = config_.channels_last ? 1 : positions_;
    int64_t stride = config_.channels_last ? channels : 1;
    const auto dims = static_cast<int>(config_.extent.size());
    for (int d = dims - 1; d >= 0; --d) {
      map.spatial_stride[kMaxSpatialDims - dims + d] = stride;
      stride *= config_.extent[d];
    }
    return map;
  }
  int64_t At(int64_t channels, int64_t b, int64_t c, int64_t n) const {
    return config_.channels_last ? (b * positions_ + n) * channels + c : (b * channels + c) * positions_ + n;
  }
  double Value(const std::vector<T>& x, int64_t channels, int64_t b, int64_t c, int64_t n) const {
    return static_cast<double>(static_cast<A>(x[At(channels, b, c, n)]));
  }
  std::vector<int64_t> Coordinates(int64_t position) const {
    std::vector<int64_t> at(config_.extent.size());
    for (int d = static_cast<int>(at.size()) - 1; d >= 0; --d) {
      at[d] = position % config_.extent[d];
      position /= config_.extent[d];
    }
    return at;
  }
  bool Valid(int64_t sample, int64_t position) const {
    const std::vector<int64_t> at = Coordinates(position);
    for (size_t d = 0; d < at.size() && !config_.valid.empty(); ++d) {
      if (at[d] >= config_.valid[sample * at.size() + d]) return false;
    }
    return true;
  }

  // Returns the values at one sample's valid positions.
  Rows Read(const std::vector<T>& x, int64_t channels, int64_t b, const std::vector<int64_t>& valid) const {
    Rows out(channels, std::vector<double>(valid.size()));
    for (int64_t c = 0; c < channels; ++c) {
      for (size_t i = 0; i < valid.size(); ++i) out[c][i] = Value(x, channels, b, c, valid[i]);
    }
    return out;
  }

  Rows Transformed(const Rows& x, const std::vector<A>& weight, const std::vector<A>& bias,
                   int64_t rows) const {
    if (weight.empty()) return x;
    Rows out(rows, std::vector<double>(x[0].size(), 0.0));
    for (int64_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < x[0].size(); ++i) {
        out[r][i] = bias.empty() ? 0 : bias[r];
        for (size_t c = 0; c < x.size(); ++c) out[r][i] += weight[r * x.size() + c] * x[c][i];
      }
    }
    return out;
  }

  // Returns the maximum over the positions of each window; windows are ordered by their first position.
  Rows Pooled(const Rows& x, const std::vector<int64_t>& valid) const {
    std::vector<std::vector<int64_t>> windows;
    std::vector<size_t> window_of(valid.size());
    for (size_t i = 0; i < valid.size(); ++i) {
      std::vector<int64_t> window = Coordinates(valid[i]);
      for (int64_t& at : window) at /= 2;
      const auto found = std::find(windows.begin(), windows.end(), window);
      window_of[i] = static_cast<size_t>(found - windows.begin());
      if (found == windows.end()) windows.push_back(window);
    }
    Rows out(x.size(), std::vector<double>(windows.size(), -std::numeric_limits<double>::infinity()));
    for (size_t r = 0; r < x.size(); ++r) {
      for (size_t i = 0; i < valid.size(); ++i) {
        out[r][window_of[i]] = std::max(out[r][window_of[i]], x[r][i]);
      }
    }
    return out;
  }

  // Adds every key's contribution to every query of one head.
  void AttendHead(const Rows& q, const Rows& k, const Rows& v, int64_t head, Rows* out) const {
    const int64_t head_keys = keys_ / config_.heads;
    const int64_t head_values = values_ / config_.heads;
    const size_t keys = k[0].size();
    for (size_t i = 0; i < q[0].size(); ++i) {
      std::vector<double> coefficients(keys, 0.0);
      for (size_t j = 0; j < keys; ++j) {
        for (int64_t c = head * head_keys; c < (head + 1) * head_keys; ++c)
          coefficients[j] += k[c][j] * q[c][i];
      }
      if (config_.kind == AttentionKind::kMean) {
        for (double& value : coefficients) value /= static_cast<double>(keys);
      } else {
        double sum = 0;
        for (double& value : coefficients) sum += value = std::exp(value * LogitScale());
        for (double& value : coefficients) value /= sum;
      }
      for (int64_t c = head * head_values; c < (head + 1) * head_values; ++c) {
        for (size_t j = 0; j < keys; ++j) (*out)[c][i] += v[c][j] * coefficients[j];
      }
    }
  }

  // Returns the expected [out_channels][positions] of one sample, with zeros outside its extent.
  std::vector<double> Expected(int64_t b) const {
    std::vector<int64_t> valid;
    for (int64_t n = 0; n < positions_; ++n) {
      if (Valid(b, n)) valid.push_back(n);
    }
    std::vector<double> out(out_channels_ * positions_, 0.0);
    if (valid.empty()) return out;
    const bool one_map = config_.module || config_.shared;
    const auto& v_map = one_map ? q_ : v_;
    const Rows q = Transformed(Read(q_, config_.channels, b, valid), query_weight_, query_bias_, keys_);
    Rows k = Read(one_map ? q_ : k_, config_.channels, b, valid);
    Rows v = Read(v_map, one_map ? config_.channels : values_, b, valid);
    if (config_.kind == AttentionKind::kPooled) {
      k = Pooled(k, valid);
      v = Pooled(v, valid);
    }
    k = Transformed(k, key_weight_, key_bias_, keys_);
    v = Transformed(v, value_weight_, value_bias_, values_);
    Rows attended(values_, std::vector<double>(valid.size(), 0.0));
    for (int64_t head = 0; head < config_.heads; ++head) AttendHead(q, k, v, head, &attended);
    for (int64_t c = 0; c < out_channels_; ++c) {
      for (size_t i = 0; i < valid.size(); ++i) {
        double y = out_weight_.empty() ? attended[c][i] : 0;
        for (int64_t d = 0; d < values_ && !out_weight_.empty(); ++d) {
          y += out_weight_[c * values_ + d] * attended[d][i];
        }
        if (!scale_.empty()) y = y * scale_[c] + shift_[c];
        if (config_.residual) y += Value(q_, config_.channels, b, c, valid[i]);
        out[c * positions_ + valid[i]] = y;
      }
    }
    return out;
  }

  AttentionTestConfig config_;
  std::mt19937 random_;
  int64_t positions_, keys_, values_, out_channels_;
  std::vector<T> q_, k_, v_, out_;
  std::vector<A> query_weight_, key_weight_, value_weight_, query_bias_, key_bias_, value_bias_;
  std::vector<A> out_weight_, scale_, shift_;
};

}  // namespace saccade::kernels
