// Helpers for the tests of the attention core: random problems of every kind, and the formulas in float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "kernels/common/device.h"
#include "kernels/common/testing/below_tensors.h"
#include "kernels/common/testing/test_map.h"
#include "kernels/device/attend_problem.h"

namespace saccade::kernels {

struct AttendTestConfig {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t depth = 8;
  int64_t value_channels = 8;
  std::vector<int64_t> queries = {5, 7};
  std::vector<int64_t> keys = {5, 7};
  std::vector<int64_t> valid_queries = {};
  std::vector<int64_t> valid_keys = {};
  // Layout of each operand: 'p' positions adjacent, 'c' channels adjacent, 'g' positions adjacent with gaps
  // between rows, 'w' float32 weights shared by the batch, 'f' a float32 matrix for every sample.
  std::string layout = "pppp";  // of q, k, v and out
  bool logits = false;          // given instead of q and k, in q's layout
  bool softmax = true;
  bool mean = false;
  float scale = 0.7f;
  bool biases = false;
  int64_t key_group = 0;
  bool epilogue = false;
};

inline std::ostream& operator<<(std::ostream& out, const AttendTestConfig& c) {
  out << c.batch << "x" << c.heads << " depth=" << c.depth << " values=" << c.value_channels << " queries=";
  for (const int64_t size : c.queries) out << size << ",";
  out << " keys=";
  for (const int64_t size : c.keys) out << size << ",";
  return out << " layout=" << c.layout << " logits=" << c.logits << " softmax=" << c.softmax
             << " mean=" << c.mean << " biases=" << c.biases << " group=" << c.key_group
             << " epilogue=" << c.epilogue << " padded=" << !c.valid_queries.empty() << !c.valid_keys.empty();
}

// A matrix per sample and head, with rows at the positions of an extent, in one of the layouts above.
// Elements that no view may read are NaN.
template <typename T>
class TestRows {
 public:
  TestRows(int64_t batch, int64_t heads, int64_t channels, const std::vector<int64_t>& size, char layout)
      : heads_(heads), channels_(channels), size_(size), layout_(layout) {
    for (const int64_t n : size) positions_ *= n;
    const int64_t gap = layout == 'g' ? 3 : 0;
    const int64_t width = size.back();
    rows_.dtype = Wide() ? Dtype::kFloat32 : kDtypeOf<T>;
    rows_.channel_stride = layout == 'c' || Wide() ? 1 : positions_ / width * (width + gap);
    int64_t stride = layout == 'c' ? heads * channels : Wide() ? channels : 1;
    for (int d = static_cast<int>(size.size()) - 1, at = kMaxSpatialDims - 1; d >= 0; --d, --at) {
      rows_.row_stride[at] = stride;
      stride *= size[d] + (at == kMaxSpatialDims - 1 ? gap : 0);
    }
    rows_.head_stride = layout == 'c' ? channels
                        : Wide()      ? channels * positions_
                                      : channels * rows_.channel_stride;
    const int64_t all = heads * channels * (layout == 'c' || Wide() ? positions_ : rows_.channel_stride);
    rows_.batch_stride = layout == 'w' ? 0 : all;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    values_.assign(Wide() ? 0 : all * batch, T(nan));
    weights_.assign(!Wide() ? 0 : layout == 'w' ? all : all * batch, nan);
  }

  Rows view() const {
    Rows rows = rows_;
    rows.data = Wide() ? static_cast<const void*>(weights_.data()) : values_.data();
    return rows;
  }
  OutputRows output() {
    OutputRows rows;
    rows.dtype = rows_.dtype;
    rows.data = Wide() ? static_cast<void*>(weights_.data()) : values_.data();
    rows.batch_stride = rows_.batch_stride;
    rows.head_stride = rows_.head_stride;
    rows.channel_stride = rows_.channel_stride;
    for (int d = 0; d < kMaxSpatialDims; ++d) rows.row_stride[d] = rows_.row_stride[d];
    return rows;
  }
  void Set(int64_t b, int64_t h, int64_t position, int64_t c, float value) {
    const int64_t at = At(b, h, position, c);
    if (Wide()) {
      weights_[at] = value;
    } else {
      values_[at] = T(value);
    }
  }
  double Get(int64_t b, int64_t h, int64_t position, int64_t c) const {
    const int64_t at = At(b, h, position, c);
    return Wide() ? weights_[at] : static_cast<double>(static_cast<float>(values_[at]));
  }
  int64_t positions() const { return positions_; }
  const std::vector<T>& values() const { return values_; }
  bool SameBitsAs(const TestRows& other) const {
    return Wide() ? SameBits(weights_, other.weights_) : SameBits(values_, other.values_);
  }

 private:
  bool Wide() const { return layout_ == 'w' || layout_ == 'f'; }
  int64_t At(int64_t b, int64_t h, int64_t position, int64_t c) const {
    int64_t at = b * rows_.batch_stride + h * rows_.head_stride + c * rows_.channel_stride;
    for (int d = static_cast<int>(size_.size()) - 1, dim = kMaxSpatialDims - 1; d >= 0; --d, --dim) {
      at += position % size_[d] * rows_.row_stride[dim];
      position /= size_[d];
    }
    return at;
  }

  int64_t heads_, channels_, positions_ = 1;
  std::vector<int64_t> size_;
  char layout_;
  Rows rows_;
  std::vector<T> values_;
  std::vector<float> weights_;
};

// The arrays of one problem with random values, and the expected result.
template <typename T>
class AttendTestCase {
 public:
  // `product`: tests RunProduct, where the keys are the result's channels.
  AttendTestCase(const AttendTestConfig& config, unsigned seed, bool product = false)
      : config_(config),
        product_(product),
        random_(seed),
        q_(config.batch, config.heads, config.logits ? Positions(config.keys) : config.depth, config.queries,
           config.layout[0]),
        k_(config.batch, config.heads, config.depth, config.keys, config.layout[1]),
        v_(config.batch, config.heads, config.value_channels, config.keys, config.layout[2]),
        residual_(config.batch, config.heads, OutChannels(), config.queries,
                  config.layout[3] == 'f' ? 'p' : config.layout[3]),
        out_(config.batch, config.heads, OutChannels(), config.queries, config.layout[3]) {
    Fill(q_, config.logits ? Positions(config.keys) : config.depth, config.queries, config.valid_queries);
    Fill(k_, config.depth, config.keys, config.valid_keys);
    Fill(v_, config.value_channels, config.keys, config.valid_keys);
    Fill(residual_, OutChannels(), config.queries, config.valid_queries);
    key_bias_ = Numbers(config.heads * k_.positions());
    query_bias_ = Numbers(config.heads * q_.positions());
    channel_scale_ = Numbers(config.heads * OutChannels());
    channel_shift_ = Numbers(config.heads * OutChannels());
    row_sums_.assign(config.batch * config.heads * q_.positions(), std::numeric_limits<float>::quiet_NaN());
  }

  AttendProblem Problem() {
    AttendProblem p;
    p.batch = config_.batch;
    p.heads = config_.heads;
    p.depth = config_.depth;
    p.value_channels = config_.value_channels;
    p.queries = ExtentOf(config_.queries, config_.valid_queries);
    p.keys = ExtentOf(config_.keys, config_.valid_keys);
    if (config_.logits) {
      p.logits = q_.view();
      p.logits_key_stride[2] = p.logits.channel_stride;
      p.logits_key_stride[1] = p.keys.size[2] * p.logits.channel_stride;
      p.logits_key_stride[0] = p.keys.size[1] * p.logits_key_stride[1];
    } else {
      p.q = q_.view();
      p.k = k_.view();
    }
    p.v = v_.view();
    p.out = out_.output();
    p.softmax = config_.softmax;
    p.mean = config_.mean;
    p.scale = config_.scale;
    p.key_group = config_.key_group;
    if (config_.biases) p.key_bias = key_bias_.data();
    if (config_.biases && !config_.softmax) {
      p.query_bias = query_bias_.data();
      if (!product_) p.row_sums = row_sums_.data();
    }
    if (config_.epilogue) {
      p.channel_scale = channel_scale_.data();
      p.channel_shift = channel_shift_.data();
      p.residual = residual_.view();
    }
    return p;
  }

  // Returns the relative L2 distance of the result and of row_sums from the formulas.
  double Error() const {
    double difference = 0;
    double norm = 0;
    const auto add = [&](double got, double want) {
      // A NaN fails the test, because NaN <= bound is false.
      difference += (got - want) * (got - want);
      norm += want * want;
    };
    for (int64_t b = 0; b < config_.batch; ++b) {
      for (int64_t h = 0; h < config_.heads; ++h) {
        std::vector<double> want(q_.positions() * OutChannels(), 0.0);
        const std::vector<double> sums = Expect(b, h, want);
        for (int64_t n = 0; n < q_.positions(); ++n) {
          for (int64_t c = 0; c < OutChannels(); ++c) add(out_.Get(b, h, n, c), want[n * OutChannels() + c]);
        }
        for (size_t i = 0; i < sums.size() && config_.biases && !config_.softmax && !product_; ++i) {
          add(row_sums_[(b * config_.heads + h) * q_.positions() + i], sums[i]);
        }
      }
    }
    return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
  }

  const std::vector<T>& out() const { return out_.values(); }
  // True if the bits are equal, also of a result in float32, which out() does not hold.
  bool SameResult(const AttendTestCase& other) const { return out_.SameBitsAs(other.out_); }

 private:
  static int64_t Positions(const std::vector<int64_t>& size) {
    int64_t positions = 1;
    for (const int64_t n : size) positions *= n;
    return positions;
  }
  int64_t OutChannels() const { return product_ ? Positions(config_.keys) : config_.value_channels; }

  std::vector<float> Numbers(int64_t count) {
    std::normal_distribution<float> normal(0.1f, 1.0f);
    std::vector<float> numbers(count);
    for (float& number : numbers) number = normal(random_);
    return numbers;
  }
  void Fill(TestRows<T>& rows, int64_t channels, const std::vector<int64_t>& size,
            const std::vector<int64_t>& valid) {
    std::normal_distribution<float> normal(0.1f, 1.0f);
    for (int64_t b = 0; b < config_.batch; ++b) {
      for (int64_t h = 0; h < config_.heads; ++h) {
        for (const int64_t n : ValidPositions(ExtentOf(size, valid), b)) {
          for (int64_t c = 0; c < channels; ++c) rows.Set(b, h, n, c, normal(random_));
        }
      }
    }
  }

  // Adds the result of one sample and head to `want` [positions][channels]. Returns row_sums by query index.
  std::vector<double> Expect(int64_t b, int64_t h, std::vector<double>& want) const {
    const auto queries = ValidPositions(ExtentOf(config_.queries, config_.valid_queries), b);
    const auto keys = ValidPositions(ExtentOf(config_.keys, config_.valid_keys), b);
    std::vector<double> sums;
    for (size_t i = 0; i < queries.size(); ++i) {
      std::vector<double> p(keys.size());
      double total = 0;
      for (size_t j = 0; j < keys.size(); ++j) {
        p[j] =
            Logit(b, h, i, queries[i], j, keys[j]) / (config_.mean ? static_cast<double>(keys.size()) : 1.0);
        total += p[j];
      }
      sums.push_back(total);
      double* row = want.data() + queries[i] * OutChannels();
      if (product_) {
        for (size_t j = 0; j < keys.size(); ++j) row[j] = p[j];
      } else {
        if (config_.softmax) SoftmaxInGroups(p);
        for (size_t j = 0; j < keys.size(); ++j) {
          for (int64_t c = 0; c < OutChannels(); ++c) row[c] += p[j] * v_.Get(b, h, keys[j], c);
        }
      }
      for (int64_t c = 0; c < OutChannels() && config_.epilogue; ++c) {
        row[c] = row[c] * channel_scale_[h * OutChannels() + c] + channel_shift_[h * OutChannels() + c] +
                 residual_.Get(b, h, queries[i], c);
      }
    }
    return sums;
  }
  double Logit(int64_t b, int64_t h, size_t i, int64_t query, size_t j, int64_t key) const {
    double dot = 0;
    if (config_.logits) {
      dot = q_.Get(b, h, query, key);
    } else {
      for (int64_t d = 0; d < config_.depth; ++d) dot += q_.Get(b, h, query, d) * k_.Get(b, h, key, d);
    }
    dot *= config_.scale;
    if (config_.biases) dot += key_bias_[h * k_.positions() + j];
    if (config_.biases && !config_.softmax) dot += query_bias_[h * q_.positions() + i];
    return dot;
  }
  void SoftmaxInGroups(std::vector<double>& p) const {
    const size_t group = config_.key_group == 0 ? p.size() : config_.key_group;
    for (size_t begin = 0; begin < p.size(); begin += group) {
      double top = p[begin];
      double total = 0;
      for (size_t j = begin; j < begin + group; ++j) top = std::max(top, p[j]);
      for (size_t j = begin; j < begin + group; ++j) total += p[j] = std::exp(p[j] - top);
      for (size_t j = begin; j < begin + group; ++j) p[j] /= total;
    }
  }

  AttendTestConfig config_;
  bool product_;
  std::mt19937 random_;
  TestRows<T> q_, k_, v_, residual_, out_;
  std::vector<float> key_bias_, query_bias_, channel_scale_, channel_shift_, row_sums_;
};

}  // namespace saccade::kernels
