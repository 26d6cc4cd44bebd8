// Computes the levels of the feature pyramid from pictures: the backbone, the pyramid, and the attention in
// both.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/mask_rcnn/table.h"
#include "models/networks/resnet/resnet.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class Pyramid {
 public:
  // Attention modules without tensors are left out.
  Pyramid(const MaskRcnnTable& table, TensorMap tensors);

  // Returns the levels that the RPN uses, fpn1 first. With the option `exact`, their padding is zero.
  std::vector<FeatureMap> operator()(const FeatureMap& pictures) const;

 private:
  std::array<FeatureMap, 4> Stages(const FeatureMap& pictures) const;
  // Returns the map that is merged into fpn4: fpn5 in the paper's form, none in torchvision's.
  std::optional<FeatureMap> Top(const FeatureMap& res4) const;
  // Returns the lateral map of a stage plus the upsampled map from the level above.
  FeatureMap Merged(int level, const FeatureMap& stage, const std::optional<FeatureMap>& above) const;
  void Attend(AttentionPlace place, FeatureMap& x) const;
  // With the option `exact`, zeroes the padding.
  void Clean(FeatureMap& x) const;

  bool exact_;
  bool paper_;
  at::ScalarType type_;
  Resnet backbone_;
  std::optional<Convolution> top_;
  std::vector<Convolution> laterals_;
  std::vector<Convolution> outputs_;
  using Attention = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& valid)>;
  std::map<AttentionPlace, Attention> attention_;
};

}  // namespace saccade::models
