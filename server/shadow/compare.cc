#include "server/shadow/compare.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "models/tasks/classification.h"
#include "models/tasks/overlap.h"
#include "server/shadow/compare_tensors.h"

namespace saccade::server {
namespace {

// Objects that overlap less are not the same.
constexpr double kSameObject = 0.5;

struct TaskMeasure {
  std::string_view task;
  double tolerance;
};

// By the index of the alternative in models::TaskResult.
constexpr std::array<TaskMeasure, std::variant_size_v<models::TaskResult>> kMeasures = {
    {{"classification", 0.01},
     {"detection", 0.05},
     {"segmentation", 0.005},
     {"disparity", 0.5},
     {"actions", 0.05},
     {"restoration", 0.01},
     {"embedding", 0.001},
     {"failure", 0}}};
constexpr TaskMeasure kDepth = {"depth", 0.01};
constexpr TaskMeasure kTensors = {"tensors", 0.001};

// Also distinguishes -0 from 0.
bool SameBits(float one, float other) {
  return std::bit_cast<uint32_t>(one) == std::bit_cast<uint32_t>(other);
}

template <typename T>
bool SameBits(const std::vector<T>& one, const std::vector<T>& other) {
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0);
}

// Findings without extent are the same if all their ends are.
double Overlap(const models::Detection& one, const models::Detection& other) {
  const bool same = one.x_min == other.x_min && one.y_min == other.y_min && one.x_max == other.x_max &&
                    one.y_max == other.y_max;
  return same ? 1 : models::BoxIou(one, other);
}

double Overlap(const models::Action& one, const models::Action& other) {
  const bool same = one.start == other.start && one.end == other.end;
  return same ? 1 : models::SegmentIou(one, other);
}

// Matches each object of `one`, best score first, with the object of its class in `other` that overlaps it
// most. The difference of a pair is the larger of 1 - overlap and the difference of the scores; an object
// without a match counts with its score. Returns the largest difference.
template <typename T>
double DifferenceOfFound(const std::vector<T>& one, const std::vector<T>& other) {
  std::vector<const T*> rest;
  for (const T& found : other) rest.push_back(&found);
  double worst = 0;
  for (const T& found : one) {
    double best_overlap = 0;
    auto best = rest.end();
    for (auto candidate = rest.begin(); candidate != rest.end(); ++candidate) {
      if ((*candidate)->label != found.label) continue;
      const double overlap = Overlap(found, **candidate);
      if (best != rest.end() && overlap <= best_overlap) continue;
      best = candidate;
      best_overlap = overlap;
    }
    if (best == rest.end() || best_overlap < kSameObject) {
      worst = std::max<double>(worst, found.score);
      continue;
    }
    worst = std::max({worst, 1 - best_overlap, std::abs(static_cast<double>(found.score) - (*best)->score)});
    rest.erase(best);
  }
  for (const T* found : rest) worst = std::max<double>(worst, found->score);
  return worst;
}

double MeanDifference(const std::vector<float>& one, const std::vector<float>& other) {
  double sum = 0;
  for (size_t i = 0; i < one.size(); ++i) sum += std::abs(static_cast<double>(one[i]) - other[i]);
  return one.empty() ? 0 : sum / static_cast<double>(one.size());
}

// As a share of the range of `one`, which is not empty.
double ShareOfRange(const std::vector<float>& one, const std::vector<float>& other) {
  const auto [low, high] = std::minmax_element(one.begin(), one.end());
  return MeanDifference(one, other) / std::max(static_cast<double>(*high) - *low, 1e-12);
}

TaskMeasure MeasureOf(const ComparedAnswer& answer) {
  if (answer.results.empty()) return kTensors;
  const models::TaskResult& first = answer.results.front();
  return answer.is_depth && std::holds_alternative<models::Disparity>(first) ? kDepth
                                                                             : kMeasures.at(first.index());
}

// Compares a pair of items of one task, and adds what it finds to a comparison.
struct ComparePair {
  AnswerComparison& into;
  bool is_depth = false;

  void Add(bool equal, double difference) const {
    into.equal = into.equal && equal;
    // The negation also takes NaN, which cannot be compared.
    into.difference = std::max(into.difference, !(difference >= 0) ? kIncomparable : difference);
  }

  void operator()(const models::Classification& one, const models::Classification& other) const {
    if (one.logits.size() != other.logits.size()) {
      into.same_best = false;
      return Add(false, kIncomparable);
    }
    // The same network may end in a softmax in one version, and leave it to the daemon in the other.
    const std::vector<double> left = models::Probabilities(one);
    const std::vector<double> right = models::Probabilities(other);
    double worst = 0;
    for (size_t i = 0; i < left.size(); ++i) worst = std::max(worst, std::abs(left[i] - right[i]));
    const auto best = [](const std::vector<float>& logits) {
      return std::max_element(logits.begin(), logits.end()) - logits.begin();
    };
    into.same_best = into.same_best && best(one.logits) == best(other.logits);
    Add(one.function == other.function && SameBits(one.logits, other.logits), worst);
  }

  void operator()(const models::Detections& one, const models::Detections& other) const {
    const auto same_point = [](const models::Keypoint& a, const models::Keypoint& b) {
      return SameBits(a.x, b.x) && SameBits(a.y, b.y) && SameBits(a.score, b.score);
    };
    const auto same = [&](const models::Detection& a, const models::Detection& b) {
      return a.label == b.label && SameBits(a.score, b.score) && SameBits(a.x_min, b.x_min) &&
             SameBits(a.y_min, b.y_min) && SameBits(a.x_max, b.x_max) && SameBits(a.y_max, b.y_max) &&
             SameBits(a.mask, b.mask) &&
             std::equal(a.keypoints.begin(), a.keypoints.end(), b.keypoints.begin(), b.keypoints.end(),
                        same_point);
    };
    Add(std::equal(one.items.begin(), one.items.end(), other.items.begin(), other.items.end(), same),
        DifferenceOfFound(one.items, other.items));
  }

  void operator()(const models::Segmentation& one, const models::Segmentation& other) const {
    if (one.height != other.height || one.width != other.width || one.labels.size() != other.labels.size())
      return Add(false, kIncomparable);
    size_t differing = 0;
    for (size_t i = 0; i < one.labels.size(); ++i) differing += one.labels[i] != other.labels[i] ? 1 : 0;
    const auto pixels = static_cast<double>(std::max<size_t>(1, one.labels.size()));
    Add(differing == 0, static_cast<double>(differing) / pixels);
  }

  void operator()(const models::Disparity& one, const models::Disparity& other) const {
    if (one.height != other.height || one.width != other.width || one.values.size() != other.values.size())
      return Add(false, kIncomparable);
    if (one.values.empty()) return;
    Add(SameBits(one.values, other.values),
        is_depth ? ShareOfRange(one.values, other.values) : MeanDifference(one.values, other.values));
  }

  void operator()(const models::Actions& one, const models::Actions& other) const {
    const auto same = [](const models::Action& a, const models::Action& b) {
      return a.label == b.label && SameBits(a.score, b.score) && SameBits(a.start, b.start) &&
             SameBits(a.end, b.end);
    };
    Add(std::equal(one.items.begin(), one.items.end(), other.items.begin(), other.items.end(), same),
        DifferenceOfFound(one.items, other.items));
  }

  void operator()(const models::Restoration& one, const models::Restoration& other) const {
    if (one.depth != other.depth || one.height != other.height || one.width != other.width ||
        one.values.size() != other.values.size())
      return Add(false, kIncomparable);
    if (one.values.empty()) return;
    Add(SameBits(one.values, other.values), ShareOfRange(one.values, other.values));
  }

  void operator()(const models::Embedding& one, const models::Embedding& other) const {
    if (one.values.size() != other.values.size()) return Add(false, kIncomparable);
    if (SameBits(one.values, other.values)) return;
    double product = 0;
    double left = 0;
    double right = 0;
    for (size_t i = 0; i < one.values.size(); ++i) {
      product += static_cast<double>(one.values[i]) * other.values[i];
      left += static_cast<double>(one.values[i]) * one.values[i];
      right += static_cast<double>(other.values[i]) * other.values[i];
    }
    const double lengths = std::sqrt(left) * std::sqrt(right);
    Add(false, lengths > 0 ? std::max(0.0, 1 - product / lengths) : kIncomparable);
  }

  void operator()(const models::Failure& /*one*/, const models::Failure& /*other*/) const {
    Add(false, kIncomparable);
  }

  template <typename One, typename Other>
  void operator()(const One& /*one*/, const Other& /*other*/) const {
    Add(false, kIncomparable);
  }
};

}  // namespace

AnswerComparison CompareAnswers(const ComparedAnswer& one, const ComparedAnswer& other) {
  const TaskMeasure measure = MeasureOf(one);
  AnswerComparison comparison = {.task = measure.task, .tolerance = measure.tolerance};
  const ComparePair pair{comparison, one.is_depth};
  if (one.results.size() != other.results.size() || one.outputs.size() != other.outputs.size()) {
    pair.Add(false, kIncomparable);
    return comparison;
  }
  for (size_t i = 0; i < one.results.size(); ++i) std::visit(pair, one.results[i], other.results[i]);
  for (size_t i = 0; i < one.outputs.size(); ++i) {
    const TensorDifference found = CompareTensors(one.outputs[i], other.outputs[i]);
    pair.Add(found.equal, found.difference);
  }
  return comparison;
}

bool Agrees(const AnswerComparison& comparison, std::optional<double> tolerance) {
  if (!tolerance && comparison.task == kMeasures.front().task) return comparison.same_best;
  return comparison.difference <= tolerance.value_or(comparison.tolerance);
}

}  // namespace saccade::server
