#include "models/networks/deeplab/network.h"

#include <utility>
#include <vector>

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
      scores_(tensors.target, /*record=*/true,
              [this](const FeatureMap& x) { return std::vector<FeatureMap>{Scores(x)}; }),
      backbone_(DeepLabBackbone(options), "", std::move(tensors), options.exact) {}

FeatureMap DeepLabNetwork::Scores(const FeatureMap& pictures) const {
  FeatureMap x = backbone_.Stem(pictures);
  for (int stage = 0; stage < 4; ++stage) x = backbone_.Stage(stage, std::move(x));
  return {std::visit([&](const auto& head) { return head(x); }, head_), x.extents};
}

ScoreMaps DeepLabNetwork::operator()(const Batch& batch) const {
  Recorded::Answer answer = scores_.Fetch(batch.pixels, Extents::Of(batch.placements));
  const FeatureMap& map = answer.maps.front();
  return {map.values, map.extents, kDeepLabStride, std::move(answer.finite_pixels)};
}

}  // namespace saccade::models
