#include "models/networks/deeplab/network.h"

#include <utility>

#include "models/networks/deeplab/table.h"

namespace saccade::models {
namespace {

using Head = std::variant<AsppHead, AttentionHead>;

Head MakeHead(const DeepLabOptions& options, const TensorMap& tensors) {
  if (options.head == DeepLabHead::kAspp) return AsppHead(tensors);
  return AttentionHead(options, tensors);
}

}  // namespace

DeepLabNetwork::DeepLabNetwork(const DeepLabOptions& options, TensorMap tensors)
    : head_(MakeHead(options, tensors)),
      backbone_(DeepLabBackbone(options), "", std::move(tensors), options.exact) {}

ScoreMaps DeepLabNetwork::operator()(const Batch& batch) const {
  FeatureMap x = backbone_.Stem({batch.pixels, Extents::Of(batch.placements)});
  for (int stage = 0; stage < 4; ++stage) x = backbone_.Stage(stage, std::move(x));
  const at::Tensor scores = std::visit([&](const auto& head) { return head(x); }, head_);
  return {scores, x.extents, kDeepLabStride};
}

}  // namespace saccade::models
