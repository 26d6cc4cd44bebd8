// A pass over maps that a GPU records once for each shape, and replays: hundreds of small launches become
// one.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "models/layers/feature_map.h"
#include "models/target.h"

namespace saccade::models {

class Recorded {
 public:
  // From a batch's pictures, on the target, to maps there. It computes extents by way of FeatureMap alone,
  // never looks at a value, and always does the same for the same shape.
  using Pass = std::function<std::vector<FeatureMap>(const FeatureMap& pictures)>;

  // With `record` false, or on the CPU, the pass is simply run; and where an AttentionProbe looks on.
  Recorded(const Target& target, bool record, Pass pass);
  ~Recorded();

  // `pixels` float32 on the CPU. The results are the caller's own. Thread-safe; replays take turns.
  std::vector<FeatureMap> operator()(const at::Tensor& pixels, const Extents& extents) const;

 private:
  struct Recording;

  std::vector<FeatureMap> Replay(Recording& recording, const at::Tensor& pixels,
                                 const Extents& extents) const;

  Target target_;
  bool record_;
  Pass pass_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<int64_t>, std::unique_ptr<Recording>> recordings_;  // by the pictures' shape
};

}  // namespace saccade::models
