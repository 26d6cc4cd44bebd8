// Helpers for the tests without LibTorch: random problems of every kind, and the paper's formulas in float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/common/bfloat16.h"
#include "kernels/common/testing/below_tensors.h"
#include "kernels/common/testing/test_map.h"
#include "kernels/gsa/gsa_problem.h"

namespace saccade::kernels {

struct GsaTestConfig {
  int64_t batch = 1;
  int64_t channels = 8;  // of x; 0 for the bare operator
  int64_t heads = 2;
  int64_t key_channels = 4;  // per head, like value_channels
  int64_t value_channels = 4;
  std::vector<int64_t> extent = {5, 7};
  GsaContent content = GsaContent::kGlobal;
  bool column = true, row = true;
  bool affine = true;  // middle_scale and middle_shift, scale and shift, and biases
  bool channels_last = false;
  std::vector<int64_t> valid = {};
};

inline std::ostream& operator<<(std::ostream& out, const GsaTestConfig& c) {
  return out << c.batch << "x" << c.channels << "x" << c.extent[0] << "x" << c.extent[1]
             << " heads=" << c.heads << " of " << c.key_channels << " and " << c.value_channels
             << " content=" << static_cast<int>(c.content) << " column=" << c.column << " row=" << c.row
             << " affine=" << c.affine << " channels_last=" << c.channels_last
             << " padded=" << !c.valid.empty();
}

// Small problems of every kind: one position, lines, tails, several tiles and splits, padding, an empty
// sample.
inline std::vector<GsaTestConfig> GsaTestConfigs() {
  std::vector<GsaTestConfig> configs;
  for (const bool channels_last : {false, true}) {
    const auto add = [&](GsaTestConfig config) {
      config.channels_last = channels_last;
      configs.push_back(config);
    };
    using enum GsaContent;
    add({.channels = 1, .heads = 1, .key_channels = 1, .value_channels = 1, .extent = {1, 1}});
    add({.batch = 2, .channels = 13, .heads = 3, .key_channels = 5, .value_channels = 3, .extent = {9, 11}});
    add({.channels = 16,
         .heads = 4,
         .key_channels = 4,
         .value_channels = 4,
         .extent = {18, 15},
         .affine = false});
    add({.channels = 0, .heads = 2, .key_channels = 9, .value_channels = 10, .extent = {1, 37}});
    add({.batch = 2, .channels = 0, .heads = 1, .key_channels = 17, .value_channels = 3, .extent = {21, 3}});
    add({.channels = 6,
         .heads = 2,
         .key_channels = 3,
         .value_channels = 6,
         .extent = {8, 10},
         .content = kAxial});
    add({.channels = 0, .extent = {7, 17}, .content = kAxial, .affine = false});
    add({.channels = 6, .heads = 2, .extent = {4, 19}, .content = kNone});
    add({.channels = 5, .heads = 1, .extent = {6, 5}, .row = false});
    add({.channels = 0, .heads = 2, .extent = {6, 5}, .content = kNone, .column = false, .affine = false});
    add({.batch = 2,
         .channels = 0,
         .heads = 2,
         .extent = {6, 5},
         .column = false,
         .row = false,
         .affine = false});
    add({.batch = 3, .channels = 7, .extent = {12, 20}, .valid = {12, 20, 5, 17, 0, 3}});
    add({.batch = 2, .channels = 0, .extent = {9, 8}, .content = kAxial, .valid = {3, 8, 9, 1}});
  }
  return configs;
}

// The arrays of one problem with random values, and the expected result.
template <typename T>
class GsaTestCase {
 public:
  using A = std::conditional_t<std::is_same_v<T, double>, double, float>;

  GsaTestCase(const GsaTestConfig& config, unsigned seed)
      : config_(config),
        random_(seed),
        height_(config.extent[0]),
        width_(config.extent[1]),
        keys_(config.heads * config.key_channels),
        values_(config.heads * config.value_channels) {
    const bool module = config.channels > 0;
    x_ = RandomMap(config.channels);
    q_ = RandomMap(module ? 0 : keys_);
    k_ = RandomMap(module ? 0 : keys_);
    v_ = RandomMap(module ? 0 : values_);
    const double fan_in = std::sqrt(static_cast<double>(config.channels));
    for (auto* weight : {&query_weight_, &key_weight_})
      *weight = RandomWeights(keys_ * config.channels, fan_in);
    value_weight_ = RandomWeights(values_ * config.channels, fan_in);
    query_bias_ = RandomWeights(keys_, 1);
    value_bias_ = RandomWeights(values_, 1);
    for (const int axis : {0, 1}) {
      // One more than necessary, so that the reach differs from the extent.
      reach_[axis] = config.extent[axis] + (axis == 0 ? 1 : 0);
      const double size = std::sqrt(static_cast<double>(config.extent[axis] * config.key_channels));
      embedding_[axis] = RandomWeights((2 * reach_[axis] - 1) * config.key_channels, size);
    }
    for (auto* weight : {&middle_scale_, &middle_shift_, &scale_, &shift_})
      *weight = RandomWeights(values_, 1);
    out_.assign(config.batch * values_ * height_ * width_, T(std::numeric_limits<float>::quiet_NaN()));
  }

  GsaProblem Problem() {
    GsaProblem p;
    p.batch = config_.batch;
    p.extent = ExtentOf(config_.extent, config_.valid);
    p.dtype = std::is_same_v<T, double>     ? Dtype::kFloat64
              : std::is_same_v<T, float>    ? Dtype::kFloat32
              : std::is_same_v<T, BFloat16> ? Dtype::kBFloat16
                                            : Dtype::kFloat16;
    p.heads = config_.heads;
    p.key_channels = keys_;
    p.value_channels = values_;
    p.content = config_.content;
    p.out = MapOf<OutputMap>(out_, values_);
    p.channels = config_.channels;
    if (p.channels > 0) {
      p.x = MapOf<FeatureMap>(x_, p.channels);
      p.query_weight = query_weight_.data();
      p.key_weight = p.content == GsaContent::kNone ? nullptr : key_weight_.data();
      p.value_weight = value_weight_.data();
      p.query_bias = config_.affine ? query_bias_.data() : nullptr;
      p.value_bias = config_.affine ? value_bias_.data() : nullptr;
      p.scale = config_.affine ? scale_.data() : nullptr;
      p.shift = config_.affine ? shift_.data() : nullptr;
    } else {
      p.q = MapOf<FeatureMap>(q_, keys_);
      if (p.content != GsaContent::kNone) p.k = MapOf<FeatureMap>(k_, keys_);
      p.v = MapOf<FeatureMap>(v_, values_);
    }
    for (const int axis : {0, 1}) {
      if (!(axis == 0 ? config_.column : config_.row)) continue;
      p.embedding[axis] = embedding_[axis].data();
      p.reach[axis] = reach_[axis];
    }
    if (HasMiddle()) {
      p.middle_scale = middle_scale_.data();
      p.middle_shift = middle_shift_.data();
    }
    return p;
  }

  // Returns the relative L2 distance of the result from the formulas.
  double Error() const {
    return RelativeDistance(
        [this](int64_t b, int64_t c, int64_t n) { return Wide(out_[At(values_, b, c, n)]); }, config_.batch,
        values_, height_ * width_, [this](int64_t b) { return Expected(b); });
  }

  std::vector<T>& out() { return out_; }

 private:
  using Values = std::vector<double>;  // [channels][valid rows][valid columns]

  static double Wide(T value) { return static_cast<double>(static_cast<A>(value)); }

  bool HasMiddle() const { return config_.affine && config_.column && config_.row; }
  int64_t ValidHeight(int64_t b) const { return config_.valid.empty() ? height_ : config_.valid[2 * b]; }
  int64_t ValidWidth(int64_t b) const { return config_.valid.empty() ? width_ : config_.valid[2 * b + 1]; }

  // Returns a random map with NaN in the padding.
  std::vector<T> RandomMap(int64_t channels) {
    std::normal_distribution<float> normal(0.2f, 1.0f);
    std::vector<T> map(config_.batch * channels * height_ * width_);
    for (int64_t b = 0; b < config_.batch; ++b) {
      for (int64_t n = 0; n < height_ * width_; ++n) {
        const bool valid = n / width_ < ValidHeight(b) && n % width_ < ValidWidth(b);
        for (int64_t c = 0; c < channels; ++c) {
          map[At(channels, b, c, n)] = T(valid ? normal(random_) : std::numeric_limits<float>::quiet_NaN());
        }
      }
    }
    return map;
  }
  std::vector<A> RandomWeights(int64_t count, double divisor) {
    std::normal_distribution<double> normal(0.1, 1.0);
    std::vector<A> values(count);
    for (A& value : values) value = static_cast<A>(normal(random_) / divisor);
    return values;
  }
  template <typename Map, typename Vector>
  Map MapOf(Vector& x, int64_t channels) const {
    const int64_t position = config_.channels_last ? channels : 1;
    Map map;
    map.data = x.data();
    map.batch_stride = channels * height_ * width_;
    map.channel_stride = config_.channels_last ? 1 : height_ * width_;
    map.spatial_stride[1] = width_ * position;
    map.spatial_stride[2] = position;
    return map;
  }
  int64_t At(int64_t channels, int64_t b, int64_t c, int64_t n) const {
    return config_.channels_last ? (b * height_ * width_ + n) * channels + c
                                 : (b * channels + c) * height_ * width_ + n;
  }

  Values ValuesOf(const std::vector<T>& map, int64_t channels, int64_t b) const {
    Values values;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = 0; y < ValidHeight(b); ++y) {
        for (int64_t x = 0; x < ValidWidth(b); ++x)
          values.push_back(Wide(map[At(channels, b, c, y * width_ + x)]));
      }
    }
    return values;
  }
  Values Projected(const std::vector<A>& weight, const std::vector<A>* bias, int64_t rows, int64_t b) const {
    const Values x = ValuesOf(x_, config_.channels, b);
    const int64_t positions = ValidHeight(b) * ValidWidth(b);
    Values y(rows * positions);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t n = 0; n < positions; ++n) {
        double sum = bias == nullptr ? 0 : (*bias)[r];
        for (int64_t c = 0; c < config_.channels; ++c) {
          sum += weight[r * config_.channels + c] * x[c * positions + n];
        }
        y[r * positions + n] = sum;
      }
    }
    return y;
  }

  static void Softmax(Values& logits) {
    double max = -std::numeric_limits<double>::infinity();
    for (const double l : logits) max = std::max(max, l);
    double sum = 0;
    for (double& l : logits) sum += l = std::exp(l - max);
    for (double& l : logits) l /= sum;
  }

  // Equation 4: Q (softmax of K over positions)^T V.
  void AddContent(const Values& q, const Values& k, const Values& v, int64_t positions, Values& y) const {
    for (int64_t key = 0; key < keys_; ++key) {
      Values weights(k.begin() + key * positions, k.begin() + (key + 1) * positions);
      Softmax(weights);
      const int64_t head = key / config_.key_channels;
      for (int64_t c = head * config_.value_channels; c < (head + 1) * config_.value_channels; ++c) {
        double context = 0;
        for (int64_t n = 0; n < positions; ++n) context += weights[n] * v[c * positions + n];
        for (int64_t n = 0; n < positions; ++n) y[c * positions + n] += q[key * positions + n] * context;
      }
    }
  }

  // Equation 7 along one axis; for axial content the keys are added to the embeddings and a softmax is
  // applied.
  Values AlongAxis(int axis, const Values& q, const Values& k, const Values& v, int64_t height,
                   int64_t width) const {
    Values y(values_ * height * width, 0.0);
    const auto at = [&](int64_t c, int64_t line, int64_t i) {
      return c * height * width + (axis == 0 ? i * width + line : line * width + i);
    };
    const int64_t length = axis == 0 ? height : width;
    for (int64_t head = 0; head < config_.heads; ++head) {
      for (int64_t line = 0; line < (axis == 0 ? width : height); ++line) {
        for (int64_t own = 0; own < length; ++own) {
          Values scores(length, 0.0);
          for (int64_t i = 0; i < length; ++i) {
            for (int64_t c = 0; c < config_.key_channels; ++c) {
              const int64_t key = head * config_.key_channels + c;
              double other = embedding_[axis][(i - own + reach_[axis] - 1) * config_.key_channels + c];
              if (config_.content == GsaContent::kAxial) other += k[at(key, line, i)];
              scores[i] += q[at(key, line, own)] * other;
            }
          }
          if (config_.content == GsaContent::kAxial) Softmax(scores);
          for (int64_t c = head * config_.value_channels; c < (head + 1) * config_.value_channels; ++c) {
            for (int64_t i = 0; i < length; ++i) y[at(c, line, own)] += scores[i] * v[at(c, line, i)];
          }
        }
      }
    }
    return y;
  }

  static void Affine(const std::vector<A>& scale, const std::vector<A>& shift, int64_t positions, Values& y) {
    for (size_t i = 0; i < y.size(); ++i) y[i] = y[i] * scale[i / positions] + shift[i / positions];
  }

  std::vector<double> Expected(int64_t b) const {
    std::vector<double> out(values_ * height_ * width_, 0.0);
    const int64_t height = ValidHeight(b);
    const int64_t width = ValidWidth(b);
    const int64_t positions = height * width;
    if (positions == 0) return out;
    const bool module = config_.channels > 0;
    const bool biases = config_.affine;
    const Values q =
        module ? Projected(query_weight_, biases ? &query_bias_ : nullptr, keys_, b) : ValuesOf(q_, keys_, b);
    const Values k = module ? Projected(key_weight_, nullptr, keys_, b) : ValuesOf(k_, keys_, b);
    const Values v = module ? Projected(value_weight_, biases ? &value_bias_ : nullptr, values_, b)
                            : ValuesOf(v_, values_, b);
    Values positional(values_ * positions, 0.0);
    if (config_.column) positional = AlongAxis(0, q, k, v, height, width);
    if (HasMiddle()) Affine(middle_scale_, middle_shift_, positions, positional);
    if (config_.row) positional = AlongAxis(1, q, k, config_.column ? positional : v, height, width);
    if (config_.content == GsaContent::kGlobal) AddContent(q, k, v, positions, positional);
    if (module && config_.affine) Affine(scale_, shift_, positions, positional);
    for (int64_t c = 0; c < values_; ++c) {
      for (int64_t n = 0; n < positions; ++n) {
        out[c * height_ * width_ + n / width * width_ + n % width] = positional[c * positions + n];
      }
    }
    return out;
  }

  GsaTestConfig config_;
  std::mt19937 random_;
  int64_t height_, width_;
  int64_t keys_, values_;
  std::vector<T> x_, q_, k_, v_, out_;
  std::vector<A> query_weight_, key_weight_, value_weight_, query_bias_, value_bias_;
  std::vector<A> embedding_[2];
  int64_t reach_[2];
  std::vector<A> middle_scale_, middle_shift_, scale_, shift_;
};

}  // namespace saccade::kernels
