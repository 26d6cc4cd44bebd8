// DeepLabV2 with its weights: computes the classes' scores from pictures, one position every eight pixels.
#pragma once

#include <variant>

#include "models/api/model.h"
#include "models/device/recorded.h"
#include "models/networks/deeplab/head.h"
#include "models/networks/deeplab/options.h"
#include "models/networks/resnet/resnet.h"
#include "models/tasks/segment.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class DeepLabNetwork {
 public:
  DeepLabNetwork(const DeepLabOptions& options, TensorMap tensors);

  ScoreMaps operator()(const Batch& batch) const;

 private:
  FeatureMap Scores(const FeatureMap& pictures) const;

  std::variant<AsppHead, AttentionHead> head_;  // first, as the backbone takes the remaining tensors
  Recorded scores_;
  Resnet backbone_;
};

}  // namespace saccade::models
