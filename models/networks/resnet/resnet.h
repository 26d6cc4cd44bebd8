// A residual network with its weights, folded and packed; for clips if its weights are 3-D, otherwise for
// pictures.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "models/layers/convolution.h"
#include "models/layers/feature_map.h"
#include "models/networks/resnet/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// With `exact`, padding is zeroed after every layer, so that a picture's features do not depend on the
// bucket. Clips have no padding: their extents are empty, and `exact` must be false. Immutable and
// thread-safe.
class Resnet {
 public:
  Resnet(const ResnetTable& table, const std::string& prefix, TensorMap tensors, bool exact);

  // Computes the input map of stage 0 from pictures or clips.
  FeatureMap Stem(const FeatureMap& pictures) const;
  // Computes stage 0 to 3. Does not overwrite x: a stage's first block has a projected shortcut.
  FeatureMap Stage(int stage, FeatureMap x) const;

 private:
  struct Block {
    Convolution first, second, third;
    std::optional<Convolution> shortcut;
    Window first_window, second_window;
  };
  FeatureMap Run(const Block& block, FeatureMap x) const;

  ResnetTable table_;
  bool exact_;
  Convolution stem_;
  std::vector<std::vector<Block>> stages_;
};

}  // namespace saccade::models
