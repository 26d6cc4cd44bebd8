// A residual network with weights, folded and packed: of pictures, or of clips if its weights are.
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

// Clips have a side more and are their own extents: theirs stay empty, and `exact` is not for them. With
// `exact`, padding is zeroed again after every layer, so that a picture's features are those it has
// alone. Immutable; calls may run at once on several threads.
class Resnet {
 public:
  Resnet(const ResnetTable& table, const std::string& prefix, TensorMap tensors, bool exact);

  // From the pictures or clips to the map that enters stage 0.
  FeatureMap Stem(const FeatureMap& pictures) const;
  // Stage 0 to 3. x stays as it is: a stage's first block has a shortcut with memory of its own.
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
