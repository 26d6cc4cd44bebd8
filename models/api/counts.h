// Costs of a network, computed from its table alone, without weights. Does not include LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace saccade::models {

struct LayerCount {
  std::string name;              // name of the layer's parameters, e.g. "blocks.4.depthwise"
  std::string operation = {};    // e.g. "3x3 depthwise, 192 channels, stride 1, 28x28"
  bool attention = false;        // part of an attention path
  int64_t parameters = 0;        // as papers count: weights of convolutions, transforms, classifier, and w
  int64_t other_parameters = 0;  // not counted by papers: biases, batch norms' weight and bias
  int64_t madds = 0;             // multiply-adds for one picture, as papers count
  // Memory held by attention for one picture, as its paper counts; 0 if the paper does not say.
  int64_t attention_bytes = 0;
};

struct Counts {
  std::vector<LayerCount> layers;  // in order of execution

  int64_t Parameters() const { return Sum(&LayerCount::parameters, false); }
  int64_t AllParameters() const { return Parameters() + Sum(&LayerCount::other_parameters, false); }
  int64_t Madds() const { return Sum(&LayerCount::madds, false); }
  int64_t AttentionParameters() const { return Sum(&LayerCount::parameters, true); }
  int64_t AttentionMadds() const { return Sum(&LayerCount::madds, true); }
  int64_t AttentionBytes() const { return Sum(&LayerCount::attention_bytes, true); }

 private:
  int64_t Sum(int64_t LayerCount::* field, bool attention_only) const {
    int64_t sum = 0;
    for (const LayerCount& layer : layers) {
      if (layer.attention || !attention_only) sum += layer.*field;
    }
    return sum;
  }
};

}  // namespace saccade::models
