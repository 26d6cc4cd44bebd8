// Helpers for the tests without LibTorch: random problems of every kind, and the definition, sample by
// sample.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/common/testing/below_tensors.h"
#include "kernels/roi_align/roi_align_problem.h"

namespace saccade::kernels {

struct RoiAlignTestConfig {
  enum Layout { kContiguous, kChannelsLast, kEveryOtherColumn };
  int64_t batch = 2;
  int64_t channels = 3;
  std::vector<std::vector<int64_t>> levels = {{13, 17}};  // three dimensions: segments of a video
  int64_t regions = 12;
  std::vector<int64_t> pooled = {3, 3};
  int64_t sampling_ratio = -1;
  bool aligned = false;
  Layout layout = kContiguous;
  bool channels_last_out = false;
  bool padded = false;
  bool turned = false;  // regions with swapped ends
};

inline std::ostream& operator<<(std::ostream& out, const RoiAlignTestConfig& c) {
  out << c.batch << "x" << c.channels << " levels=" << c.levels.size() << " map";
  for (const int64_t size : c.levels[0]) out << " " << size;
  out << " pooled";
  for (const int64_t size : c.pooled) out << " " << size;
  return out << " ratio=" << c.sampling_ratio << " aligned=" << c.aligned << " layout=" << c.layout
             << " channels_last_out=" << c.channels_last_out << " padded=" << c.padded
             << " turned=" << c.turned;
}

// One pixel, tails of channels and bins, narrow and wide regions in every layout, pyramids, videos, padding.
inline std::vector<RoiAlignTestConfig> RoiAlignTestConfigs() {
  std::vector<RoiAlignTestConfig> configs;
  using Config = RoiAlignTestConfig;
  for (const auto layout : {Config::kContiguous, Config::kChannelsLast, Config::kEveryOtherColumn}) {
    const auto add = [&](Config config) {
      config.layout = layout;
      config.channels_last_out = layout == Config::kChannelsLast;
      configs.push_back(config);
      config.channels_last_out = !config.channels_last_out;
      config.sampling_ratio = config.sampling_ratio < 0 ? 2 : -1;
      config.aligned = !config.aligned;
      configs.push_back(config);
    };
    add({.batch = 1, .channels = 1, .levels = {{1, 1}}, .pooled = {2, 2}});
    add({.channels = 19, .levels = {{9, 11}}, .pooled = {7, 7}});
    add({.channels = 40, .levels = {{9, 11}}, .pooled = {7, 7}});
    add({.batch = 1, .channels = 264, .levels = {{6, 5}}, .regions = 3, .pooled = {3, 2}});
    add({.channels = 131, .levels = {{6, 5}}, .regions = 4, .pooled = {2, 5}, .padded = true});
    add({.levels = {{20, 90}}, .regions = 20, .pooled = {2, 18}});
    add({.levels = {{31, 70}}, .regions = 20, .pooled = {7, 7}, .sampling_ratio = 1, .padded = true});
    add({.channels = 6, .levels = {{24, 32}, {12, 16}, {6, 8}}, .regions = 20, .padded = true});
    add({.levels = {{15, 4, 6}}, .pooled = {5, 2, 4}});
    add({.levels = {{8, 3, 5}}, .pooled = {4, 2, 2}, .sampling_ratio = 2, .padded = true});
    add({.levels = {{13, 40}}, .pooled = {3, 20}, .sampling_ratio = 3, .aligned = true, .turned = true});
  }
  return configs;
}

template <typename T>
class RoiAlignTestCase {
 public:
  using A = std::conditional_t<std::is_same_v<T, double>, double, float>;

  RoiAlignTestCase(const RoiAlignTestConfig& config, unsigned seed) : config_(config), random_(seed) {
    dims_ = static_cast<int>(config.pooled.size());
    maps_.resize(config.levels.size());
    valid_.resize(config.levels.size());
    for (size_t l = 0; l < config.levels.size(); ++l) FillMap(l);
    const auto& largest = config.levels[0];
    for (int64_t k = 0; k < config.regions; ++k) {
      rois_.push_back(static_cast<A>(k % config.batch));
      std::vector<A> low, high;
      for (int d = dims_ - 1; d >= (temporal() ? dims_ - 1 : 0); --d) {
        const double size = static_cast<double>(largest[temporal() ? 0 : d]) * 4;
        // A third small, a third large, a third anywhere, including across the border and outside.
        const double middle = Uniform(k % 3 == 2 ? -0.3 : 0.1, k % 3 == 2 ? 1.3 : 0.9) * size;
        const double extent = Uniform(0.01, k % 3 == 0 ? 0.2 : 1.2) * size;
        low.push_back(static_cast<A>(middle - extent / 2));
        high.push_back(static_cast<A>(middle + extent / 2));
      }
      if (config.turned) std::swap(low, high);
      rois_.insert(rois_.end(), low.begin(), low.end());
      rois_.insert(rois_.end(), high.begin(), high.end());
      // Covers each level, and regions without a level.
      level_of_.push_back(k % static_cast<int64_t>(config.levels.size() + 1) - (k % 2));
    }
    out_.assign(config.regions * config.channels * Bins(), T(std::numeric_limits<float>::quiet_NaN()));
  }

  RoiAlignProblem Problem() {
    RoiAlignProblem p;
    p.levels = static_cast<int>(config_.levels.size());
    p.batch = config_.batch;
    p.channels = config_.channels;
    for (int l = 0; l < p.levels; ++l) {
      p.level[l].extent = ExtentOf(config_.levels[l], valid_[l]);
      p.level[l].scale = Scale(l);
      p.level[l].map = {
          .data = maps_[l].data(), .batch_stride = At(l, 1, 0, 0), .channel_stride = At(l, 0, 1, 0)};
      int64_t positions = 1;
      for (int d = dims_ - 1; d >= 0; --d) {
        p.level[l].map.spatial_stride[kMaxSpatialDims - dims_ + d] = At(l, 0, 0, positions);
        positions *= config_.levels[l][d];
      }
      p.level[l].elements = static_cast<int64_t>(maps_[l].size());
    }
    p.regions = config_.regions;
    p.rois = rois_.data();
    p.temporal = temporal();
    p.level_of = p.levels > 1 ? level_of_.data() : nullptr;
    for (int d = 0; d < dims_; ++d) p.pooled[kMaxSpatialDims - dims_ + d] = config_.pooled[d];
    p.sampling_ratio = config_.sampling_ratio;
    p.aligned = config_.aligned;
    p.out = out_.data();
    p.channels_last = config_.channels_last_out;
    return p;
  }

  // Returns the relative L2 distance of the result from the definition.
  double Error() const {
    double difference = 0;
    double norm = 0;
    for (int64_t k = 0; k < config_.regions; ++k) {
      for (int64_t bin = 0; bin < Bins(); ++bin) {
        const std::vector<double> expected = Expected(k, bin);
        for (int64_t c = 0; c < config_.channels; ++c) {
          const int64_t at = config_.channels_last_out ? bin * config_.channels + c : c * Bins() + bin;
          const double got = static_cast<double>(static_cast<A>(out_[k * config_.channels * Bins() + at]));
          difference += (got - expected[c]) * (got - expected[c]);
          norm += expected[c] * expected[c];
        }
      }
    }
    return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
  }

  std::vector<T>& out() { return out_; }
  std::vector<A>& rois() { return rois_; }

 private:
  bool temporal() const { return config_.pooled.size() == 3; }
  static double Scale(size_t l) { return std::ldexp(0.25, -static_cast<int>(l)); }
  double Uniform(double from, double to) { return std::uniform_real_distribution<double>(from, to)(random_); }
  int64_t Bins() const {
    int64_t bins = 1;
    for (const int64_t size : config_.pooled) bins *= size;
    return bins;
  }
  int64_t Positions(size_t l) const {
    int64_t positions = 1;
    for (const int64_t size : config_.levels[l]) positions *= size;
    return positions;
  }
  int64_t At(size_t l, int64_t b, int64_t c, int64_t position) const {
    const int64_t step = config_.layout == RoiAlignTestConfig::kEveryOtherColumn ? 2 : 1;
    return config_.layout == RoiAlignTestConfig::kChannelsLast
               ? (b * Positions(l) + position) * config_.channels + c
               : ((b * config_.channels + c) * Positions(l) + position) * step;
  }
  int64_t Size(size_t l, int64_t sample, int d) const {
    return valid_[l].empty() ? config_.levels[l][d] : valid_[l][sample * dims_ + d];
  }

  // Allocates exactly as much as the operator may read, with NaN wherever it must not read.
  void FillMap(size_t l) {
    if (config_.padded) {
      for (int64_t b = 0; b < config_.batch; ++b) {
        for (const int64_t size : config_.levels[l])
          valid_[l].push_back(b == 0 ? size - size / 3 : size - size / 5);
      }
      if (config_.batch > 1 && l > 0) valid_[l][dims_] = 0;
    }
    maps_[l].assign(At(l, config_.batch - 1, config_.channels - 1, Positions(l) - 1) + 1,
                    T(std::numeric_limits<float>::quiet_NaN()));
    std::normal_distribution<float> normal(0.2f, 1.0f);
    for (int64_t b = 0; b < config_.batch; ++b) {
      for (int64_t position = 0; position < Positions(l); ++position) {
        int64_t rest = position;
        bool inside = true;
        for (int d = dims_ - 1; d >= 0; --d) {
          inside = inside && rest % config_.levels[l][d] < Size(l, b, d);
          rest /= config_.levels[l][d];
        }
        for (int64_t c = 0; c < config_.channels && inside; ++c)
          maps_[l][At(l, b, c, position)] = T(normal(random_));
      }
    }
  }

  struct Sample {
    int64_t low = 0, high = 0;
    double beyond = 0;  // distance from low to the sample
    bool counts = false;
  };

  // Returns the samples of one bin along one axis. Positions are rounded as in the operator: at a hundred
  // pixels, float resolves 1e-5 of a pixel, which is more than the allowed error.
  std::vector<Sample> Samples(A from, A to, A scale, bool aligned, int64_t bins, int64_t bin,
                              int64_t size) const {
    const A shift = static_cast<A>(aligned ? 0.5 : 0.0);
    const A start = from * scale - shift;
    A extent = to * scale - shift - start;
    if (!aligned) extent = std::max(extent, A(1));
    const A step = extent / static_cast<A>(bins);
    const int64_t grid =
        config_.sampling_ratio > 0 ? config_.sampling_ratio : static_cast<int64_t>(std::ceil(step));
    std::vector<Sample> samples;
    for (int64_t i = 0; i < grid; ++i) {
      const A first = start + static_cast<A>(bin) * step;
      const A at = first + (static_cast<A>(i) + A(0.5)) * step / static_cast<A>(grid);
      Sample sample;
      sample.counts = size > 0 && at >= -1 && at <= static_cast<A>(size);
      const double inside = std::clamp<double>(at, 0, std::max<double>(static_cast<double>(size - 1), 0));
      sample.low = static_cast<int64_t>(inside);
      sample.high = std::min(sample.low + 1, std::max<int64_t>(size - 1, 0));
      sample.beyond = inside - static_cast<double>(sample.low);
      samples.push_back(sample);
    }
    return samples;
  }

  // Returns the expected value of one bin for every channel.
  std::vector<double> Expected(int64_t k, int64_t bin) const {
    std::vector<double> sums(config_.channels, 0.0);
    const int64_t l = config_.levels.size() == 1 ? 0 : level_of_[k];
    if (l < 0 || l >= static_cast<int64_t>(config_.levels.size())) return sums;
    const A* roi = &rois_[k * (temporal() ? 3 : 5)];
    const auto b = static_cast<int64_t>(roi[0]);
    std::vector<std::vector<Sample>> axes(3, {{.counts = true}});
    for (int d = dims_ - 1; d >= 0; --d) {
      const int64_t of_axis = bin % config_.pooled[d];
      bin /= config_.pooled[d];
      const int64_t size = Size(l, b, d);
      auto& samples = axes[3 - dims_ + d];
      if (temporal() && d > 0) {
        samples = Samples(0, static_cast<A>(size), 1, true, config_.pooled[d], of_axis, size);
      } else {
        const int at = temporal() ? 1 : 2 - d;
        samples = Samples(roi[at], roi[at + (temporal() ? 1 : 2)], static_cast<A>(Scale(l)), config_.aligned,
                          config_.pooled[d], of_axis, size);
      }
    }
    for (const Sample& t : axes[0]) {
      for (const Sample& y : axes[1]) {
        for (const Sample& x : axes[2]) {
          if (t.counts && y.counts && x.counts) AddSample(l, b, t, y, x, &sums);
        }
      }
    }
    const auto count = static_cast<double>(axes[0].size() * axes[1].size() * axes[2].size());
    for (double& sum : sums) sum /= std::max(count, 1.0);
    return sums;
  }

  void AddSample(size_t l, int64_t b, const Sample& t, const Sample& y, const Sample& x,
                 std::vector<double>* sums) const {
    const int64_t height = config_.levels[l][dims_ - 2];
    const int64_t width = config_.levels[l][dims_ - 1];
    for (int corner = 0; corner < 8; ++corner) {
      double weight = 1;
      int64_t index[3];
      const Sample* axes[3] = {&t, &y, &x};
      for (int d = 0; d < 3; ++d) {
        const bool high = (corner >> d & 1) != 0;
        weight *= high ? axes[d]->beyond : 1 - axes[d]->beyond;
        index[d] = high ? axes[d]->high : axes[d]->low;
      }
      if (weight == 0) continue;
      const int64_t position = (index[0] * height + index[1]) * width + index[2];
      for (int64_t c = 0; c < config_.channels; ++c) {
        (*sums)[c] += weight * static_cast<double>(static_cast<A>(maps_[l][At(l, b, c, position)]));
      }
    }
  }

  RoiAlignTestConfig config_;
  std::mt19937 random_;
  int dims_;
  std::vector<std::vector<T>> maps_;
  std::vector<std::vector<int64_t>> valid_;
  std::vector<A> rois_;
  std::vector<int64_t> level_of_;
  std::vector<T> out_;
};

}  // namespace saccade::kernels
