#include "models/tasks/disagreement.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "models/tasks/classification.h"
#include "models/tasks/overlap.h"

namespace saccade::models {
namespace {

double Between(const Classification& expected, const Classification& got) {
  if (expected.logits.size() != got.logits.size()) return 1;
  if (expected.logits.empty()) return 0;
  const std::vector<double> p = Softmax(expected.logits);
  const std::vector<double> q = Softmax(got.logits);
  double distance = 0;
  for (size_t i = 0; i < p.size(); ++i) distance += std::abs(p[i] - q[i]);
  return distance / 2;
}

double Ratio(double both, double either) { return either > 0 ? both / either : 0; }

// Masks are probabilities on a grid over the box. Empty ones are the same.
double MaskIou(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 0;
  int64_t both = 0;
  int64_t either = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool in_a = a[i] >= 0.5F;
    const bool in_b = b[i] >= 0.5F;
    both += in_a && in_b ? 1 : 0;
    either += in_a || in_b ? 1 : 0;
  }
  return either == 0 ? 1 : Ratio(static_cast<double>(both), static_cast<double>(either));
}

double Iou(const Detection& a, const Detection& b) { return std::min(BoxIou(a, b), MaskIou(a.mask, b.mask)); }

double Iou(const Action& a, const Action& b) { return SegmentIou(a, b); }

// What counts as the same finding, and which findings are certain enough to be counted. A counterpart may be
// less certain, so that a score that crosses a bound by rounding is no loss.
constexpr double kSameIou = 0.5;
constexpr float kCertain = 0.5F;
constexpr float kKnown = 0.25F;

// How many of the certain findings of `here` have no counterpart in `there`. Each takes the free one of its
// class that it overlaps most, best score first.
template <typename Finding>
int64_t Lost(const std::vector<Finding>& here, const std::vector<Finding>& there) {
  std::vector<bool> taken(there.size());
  int64_t lost = 0;
  for (const Finding& one : here) {
    if (one.score < kCertain) continue;
    double best_iou = kSameIou;
    size_t best = there.size();
    for (size_t i = 0; i < there.size(); ++i) {
      if (taken[i] || there[i].label != one.label || there[i].score < kKnown) continue;
      if (const double iou = Iou(one, there[i]); iou >= best_iou) {
        best_iou = iou;
        best = i;
      }
    }
    if (best == there.size()) {
      ++lost;
    } else {
      taken[best] = true;
    }
  }
  return lost;
}

template <typename Finding>
bool IsCertain(const Finding& one) {
  return one.score >= kCertain;
}

template <typename Finding>
double Between(const std::vector<Finding>& expected, const std::vector<Finding>& got) {
  const auto certain = std::count_if(expected.begin(), expected.end(), IsCertain<Finding>) +
                       std::count_if(got.begin(), got.end(), IsCertain<Finding>);
  const int64_t lost = Lost(expected, got) + Lost(got, expected);
  return Ratio(static_cast<double>(lost), static_cast<double>(certain));
}

// The share of the elements for which `differ` holds.
template <typename T>
double Share(const std::vector<T>& expected, const std::vector<T>& got,
             const std::function<bool(T a, T b)>& differ) {
  if (expected.size() != got.size()) return 1;
  if (expected.empty()) return 0;
  int64_t count = 0;
  for (size_t i = 0; i < expected.size(); ++i) count += differ(expected[i], got[i]) ? 1 : 0;
  return static_cast<double>(count) / static_cast<double>(expected.size());
}

double Between(const Detections& expected, const Detections& got) {
  return Between(expected.items, got.items);
}
double Between(const Actions& expected, const Actions& got) { return Between(expected.items, got.items); }

double Between(const Segmentation& expected, const Segmentation& got) {
  return Share<uint8_t>(expected.labels, got.labels, [](uint8_t a, uint8_t b) { return a != b; });
}

double Between(const Disparity& expected, const Disparity& got) {
  return Share<float>(expected.values, got.values, [](float a, float b) { return std::abs(a - b) > 1; });
}

double Between(const Restoration& expected, const Restoration& got) {
  if (expected.values.size() != got.values.size()) return 1;
  double sum = 0;
  double squares = 0;
  double off = 0;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const auto value = static_cast<double>(expected.values[i]);
    const double difference = value - static_cast<double>(got.values[i]);
    sum += value;
    squares += value * value;
    off += difference * difference;
  }
  if (off == 0) return 0;
  const double spread = squares - sum * sum / static_cast<double>(expected.values.size());
  return spread > 0 ? std::min(1.0, std::sqrt(off / spread)) : 1;
}

double Between(const Embedding& expected, const Embedding& got) {
  if (expected.values.size() != got.values.size()) return 1;
  double both = 0;
  double ours = 0;
  double theirs = 0;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const auto a = static_cast<double>(expected.values[i]);
    const auto b = static_cast<double>(got.values[i]);
    both += a * b;
    ours += a * a;
    theirs += b * b;
  }
  if (ours == 0 || theirs == 0) return ours == theirs ? 0 : 1;
  return std::clamp((1 - both / std::sqrt(ours * theirs)) / 2, 0.0, 1.0);
}

double Between(const Failure& /*expected*/, const Failure& /*got*/) { return 0; }

}  // namespace

double Disagreement(const TaskResult& expected, const TaskResult& got) {
  return std::visit(
      [&](const auto& one) {
        const auto* other = std::get_if<std::decay_t<decltype(one)>>(&got);
        return other == nullptr ? 1.0 : Between(one, *other);
      },
      expected);
}

bool HasCertainFinding(const TaskResult& result) {
  const auto any = [](const auto& items) {
    return std::any_of(items.begin(), items.end(), [](const auto& one) { return IsCertain(one); });
  };
  if (const auto* found = std::get_if<Detections>(&result)) return any(found->items);
  if (const auto* found = std::get_if<Actions>(&result)) return any(found->items);
  return true;
}

}  // namespace saccade::models
