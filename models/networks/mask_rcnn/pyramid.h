// From pictures to the levels of the feature pyramid: the backbone, the pyramid, and the attention in both.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "models/layers/convolution.h"
#include "models/layers/efficient_attention.h"
#include "models/networks/mask_rcnn/table.h"
#include "models/networks/resnet/resnet.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable; calls may run at once on several threads.
class Pyramid {
 public:
  // Attention of which `tensors` holds nothing is left out.
  Pyramid(const MaskRcnnTable& table, TensorMap tensors);

  // The levels that the RPN looks at, fpn1 first. With the option `exact`, zero in the padding.
  std::vector<FeatureMap> operator()(const FeatureMap& pictures) const;

 private:
  std::array<FeatureMap, 4> Stages(const FeatureMap& pictures) const;
  // What goes down to fpn4: fpn5 in the paper's form, nothing in torchvision's.
  std::optional<FeatureMap> Top(const FeatureMap& res4) const;
  // The lateral map of a stage plus what came from above.
  FeatureMap Merged(int level, const FeatureMap& stage, const std::optional<FeatureMap>& above) const;
  void Attend(AttentionPlace place, FeatureMap& x) const;
  void Clean(FeatureMap& x) const;

  bool exact_;
  bool paper_;
  Resnet backbone_;
  std::optional<Convolution> top_;
  std::vector<Convolution> laterals_;
  std::vector<Convolution> outputs_;
  std::map<AttentionPlace, EfficientAttention> attention_;
};

}  // namespace saccade::models
