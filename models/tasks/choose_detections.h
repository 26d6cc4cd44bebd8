// Chooses among a detector's candidates: the best scores, without those that cover what a better one covers.
// Does not include LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/tasks/result.h"

namespace saccade::models {

struct ChoiceRules {
  // A candidate is dropped if its IoU with a better one is above this; nullopt keeps all.
  std::optional<float> iou = std::nullopt;
  // Whether candidates of different classes drop each other too.
  bool across_classes = false;
  // The best candidates of each class that are compared; the others are dropped. Without `iou` unused.
  int64_t max_candidates = 1000;
  int64_t max_detections = 100;
};

// Returns the chosen detections, best score first; equal scores stay in the order of `candidates`. The time
// is at most quadratic in max_candidates for each class.
std::vector<Detection> ChooseDetections(std::vector<Detection> candidates, const ChoiceRules& rules);

}  // namespace saccade::models
