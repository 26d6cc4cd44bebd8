#include "models/networks/mask_rcnn/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <variant>

namespace saccade::models {
namespace {

constexpr double kPartnersOverlap = 0.5;

double OverlapOf(const Detection& a, const Detection& b) {
  const double width = std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min);
  const double height = std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min);
  const double both = std::max(width, 0.0) * std::max(height, 0.0);
  const auto area = [](const Detection& x) {
    return static_cast<double>(x.x_max - x.x_min) * static_cast<double>(x.y_max - x.y_min);
  };
  return both / (area(a) + area(b) - both);
}

double MaskDifference(const Detection& a, const Detection& b) {
  if (a.mask.size() != b.mask.size()) return 1;
  double sum = 0;
  for (size_t i = 0; i < a.mask.size(); ++i) sum += std::fabs(a.mask[i] - b.mask[i]);
  return a.mask.empty() ? 0 : sum / static_cast<double>(a.mask.size());
}

size_t WithPartner(const Detections& of, const Detections& in, double tolerance) {
  return static_cast<size_t>(std::count_if(of.items.begin(), of.items.end(), [&](const Detection& a) {
    return std::any_of(in.items.begin(), in.items.end(), [&](const Detection& b) {
      return a.label == b.label && std::fabs(a.score - b.score) <= tolerance &&
             OverlapOf(a, b) >= kPartnersOverlap && MaskDifference(a, b) <= tolerance;
    });
  }));
}

}  // namespace

double Agreement(const TaskResult& a, const TaskResult& b, double tolerance) {
  if (a.index() != b.index()) return 0;
  if (const auto* failure = std::get_if<Failure>(&a))
    return failure->message == std::get<Failure>(b).message ? 1 : 0;
  const auto& ours = std::get<Detections>(a);
  const auto& theirs = std::get<Detections>(b);
  const size_t all = ours.items.size() + theirs.items.size();
  if (all == 0) return 1;
  return static_cast<double>(WithPartner(ours, theirs, tolerance) + WithPartner(theirs, ours, tolerance)) /
         static_cast<double>(all);
}

}  // namespace saccade::models
