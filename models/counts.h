// What a network costs, worked out from its table alone, without weights. No LibTorch here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace saccade::models {

struct LayerCount {
  std::string name;            // as its parameters are named, e.g. "blocks.4.depthwise"
  std::string operation = {};  // e.g. "3x3 depthwise, 192 channels, stride 1, 28x28"
  bool attention = false;      // part of an attention path
  int64_t parameters = 0;      // the paper's counting: weights of convolutions, transforms, classifier, and w
  int64_t other_parameters = 0;  // what the paper leaves out: biases, batch norms' weight and bias
  int64_t madds = 0;             // multiply-adds for one picture, by the papers' counting
  // What attention holds for one picture, by its paper's counting; 0 if the paper does not say.
  int64_t attention_bytes = 0;
};

struct Counts {
  std::vector<LayerCount> layers;  // in the order of execution

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
