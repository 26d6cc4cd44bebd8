// Records a pass over maps as a CUDA graph, once for each shape, and replays it: hundreds of small launches
// become one.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "models/api/target.h"
#include "models/layers/feature_map.h"

namespace saccade::models {

class Recorded {
 public:
  // Computes maps on the target from a batch's pictures on the target. It must derive extents only through
  // FeatureMap, must not read values, and must do the same work each time for the same shape.
  using Pass = std::function<std::vector<FeatureMap>(const FeatureMap& pictures)>;

  // If `record` is false, on the CPU, or if the calling thread has an AttentionProbe, the pass is run
  // directly.
  Recorded(const Target& target, bool record, Pass pass);
  ~Recorded();

  // `pixels` is float32 on the CPU. The caller owns the results. Thread-safe; replays run one at a time.
  std::vector<FeatureMap> operator()(const at::Tensor& pixels, const Extents& extents) const;

 private:
  struct Recording;

  std::vector<FeatureMap> Replay(Recording& recording, const at::Tensor& pixels,
                                 const Extents& extents) const;

  Target target_;
  bool record_;
  Pass pass_;
  // Guards recordings_ and their contents; held while recording and replaying.
  mutable std::mutex mutex_;
  mutable std::map<std::vector<int64_t>, std::unique_ptr<Recording>> recordings_;  // by shape of `pixels`
};

}  // namespace saccade::models
