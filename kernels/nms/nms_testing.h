// Helpers for the tests without LibTorch: random boxes of every kind, and the definition, pair by pair.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <random>
#include <vector>

#include "kernels/common/testing/below_tensors.h"
#include "kernels/nms/nms_problem.h"

namespace saccade::kernels {

struct NmsTestConfig {
  int64_t count = 1;
  int64_t classes = 0;  // 0 for no labels
  int64_t max_output = -1;
  bool grid = false;  // corners and scores on a grid: overlaps at the threshold, and equal scores
  double threshold = 0.5;
  int64_t padding = 0;  // number of last boxes that are empty, have the least score and a label of their own
};

inline std::ostream& operator<<(std::ostream& out, const NmsTestConfig& c) {
  return out << c.count << " boxes, classes=" << c.classes << " max_output=" << c.max_output
             << " grid=" << c.grid << " threshold=" << c.threshold << " padding=" << c.padding;
}

// Tiles, vectors and blocks with and without tails; few and many classes; results that max_output cuts off.
inline std::vector<NmsTestConfig> NmsTestConfigs() {
  return {{.count = 0},
          {.count = 1},
          {.count = 2, .classes = 2},
          {.count = 15, .grid = true},
          {.count = 64},
          {.count = 65, .threshold = 0.2},
          {.count = 130, .classes = 3, .grid = true},
          {.count = 200, .grid = true, .threshold = 1.0 / 3},
          {.count = 200, .classes = 1, .max_output = 20},
          {.count = 300, .classes = 100},
          {.count = 257, .classes = 4, .max_output = 3, .threshold = 0.7},
          {.count = 100, .max_output = 0},
          {.count = 100, .threshold = -0.5},
          {.count = 100, .threshold = 0},
          {.count = 300, .classes = 3, .max_output = 200, .threshold = 0.3, .padding = 150},
          {.count = 70, .classes = 2, .max_output = 20, .padding = 70}};
}

template <typename A>
class NmsTestCase {
 public:
  NmsTestCase(const NmsTestConfig& config, unsigned seed) : config_(config) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<A> uniform(0, 1);
    for (int64_t i = 0; i < config.count; ++i) {
      const A x = Coordinate(uniform(random) * 100), y = Coordinate(uniform(random) * 100);
      const A width = Coordinate(uniform(random) * 40), height = Coordinate(uniform(random) * 40);
      boxes_.insert(boxes_.end(), {x, y, x + width, y + height});
      scores_.push_back(config.grid ? std::round(uniform(random) * 8) / 8 : uniform(random) - A(0.5));
      labels_.push_back(static_cast<int64_t>(uniform(random) * static_cast<A>(config.classes)) - 1);
    }
    for (int64_t i = config.count - config.padding; i < config.count; ++i) {
      std::fill_n(boxes_.begin() + 4 * i, 4, A(0));
      scores_[i] = -1;
      labels_[i] = -2;
    }
    out_.assign(config.max_output < 0 ? config.count : std::min(config.count, config.max_output), -7);
  }

  NmsProblem Problem() {
    return {.count = config_.count,
            .boxes = boxes_.data(),
            .scores = scores_.data(),
            .labels = config_.classes > 0 ? labels_.data() : nullptr,
            .iou_threshold = config_.threshold,
            .out = out_.data(),
            .out_size = static_cast<int64_t>(out_.size()),
            .out_count = &out_count_};
  }

  // Returns the boxes by descending score, equal ones by index.
  std::vector<int64_t> Order() const {
    std::vector<int64_t> order(scores_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return scores_[a] > scores_[b]; });
    return order;
  }

  std::vector<int64_t> Expected() const {
    std::vector<int64_t> kept;
    for (const int64_t i : Order()) {
      const bool over = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
        return (config_.classes == 0 || labels_[i] == labels_[k]) && Overlap(i, k) > config_.threshold;
      });
      if (!over) kept.push_back(i);
    }
    kept.resize(std::min(kept.size(), out_.size()));
    return kept;
  }

  // Returns the written indices, and any value after them that is not -1.
  std::vector<int64_t> Got() const {
    std::vector<int64_t> got(out_.begin(), out_.begin() + std::min<int64_t>(out_count_, out_.size()));
    for (size_t i = got.size(); i < out_.size(); ++i) {
      if (out_[i] != -1) got.push_back(out_[i]);
    }
    return got;
  }

 private:
  A Coordinate(A value) const { return config_.grid ? std::round(value / 8) * 8 : value; }
  A Overlap(int64_t i, int64_t k) const {
    const A* a = &boxes_[4 * i];
    const A* b = &boxes_[4 * k];
    const A width = std::max(A(0), std::min(a[2], b[2]) - std::max(a[0], b[0]));
    const A height = std::max(A(0), std::min(a[3], b[3]) - std::max(a[1], b[1]));
    const A intersection = width * height;
    const A both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - intersection;
    return intersection / both;
  }

  NmsTestConfig config_;
  std::vector<A> boxes_, scores_;
  std::vector<int64_t> labels_, out_;
  int64_t out_count_ = -1;
};

}  // namespace saccade::kernels
