// What a model answers for one picture. No LibTorch here: results outlive the tensors they came from.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace saccade::models {

struct Classification {
  std::vector<float> logits;  // one per class, all finite
};

// The network gave nothing usable for this picture (a logit that is not a number, say). The pictures that
// shared its batch are not affected.
struct Failure {
  std::string message;
};

using TaskResult = std::variant<Classification, Failure>;

}  // namespace saccade::models
