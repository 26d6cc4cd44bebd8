#include "models/tasks/choose_detections.h"

#include <algorithm>
#include <map>
#include <utility>

namespace saccade::models {
namespace {

float AreaOfBox(const Detection& one) { return (one.x_max - one.x_min) * (one.y_max - one.y_min); }

// In float32, as torchvision's nms computes it.
float Overlap(const Detection& a, const Detection& b) {
  const float width = std::max(0.0F, std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min));
  const float height = std::max(0.0F, std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min));
  const float both = width * height;
  const float all = AreaOfBox(a) + AreaOfBox(b) - both;
  return all > 0 ? both / all : 0;
}

}  // namespace

std::vector<Detection> ChooseDetections(std::vector<Detection> candidates, const ChoiceRules& rules) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  const auto wanted = static_cast<size_t>(rules.max_detections);
  if (!rules.iou) {
    if (candidates.size() > wanted) candidates.resize(wanted);
    return candidates;
  }
  std::map<int64_t, int64_t> seen;                  // candidates looked at, by class
  std::map<int64_t, std::vector<size_t>> of_class;  // those kept, as indices of `kept`
  std::vector<Detection> kept;
  for (Detection& candidate : candidates) {
    if (kept.size() == wanted) break;
    const int64_t group = rules.across_classes ? 0 : candidate.label;
    if (++seen[group] > rules.max_candidates) continue;
    std::vector<size_t>& others = of_class[group];
    const bool covered = std::any_of(others.begin(), others.end(), [&](size_t other) {
      return Overlap(candidate, kept[other]) > *rules.iou;
    });
    if (covered) continue;
    others.push_back(kept.size());
    kept.push_back(std::move(candidate));
  }
  return kept;
}

}  // namespace saccade::models
