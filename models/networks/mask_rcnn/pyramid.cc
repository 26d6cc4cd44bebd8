#include "models/networks/mask_rcnn/pyramid.h"

#include <ATen/ops/slice.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <utility>

#include "models/device/transfer.h"
#include "models/layers/efficient_attention.h"
#include "models/layers/non_local.h"

namespace saccade::models {

Pyramid::Pyramid(const MaskRcnnTable& table, TensorMap tensors)
    : exact_(table.options.exact),
      paper_(table.options.paper_pyramid),
      type_(TypeOf(tensors.target)),
      backbone_(table.backbone, kBodyPrefix, Taken(tensors, kBodyPrefix), exact_) {
  if (paper_) top_ = BiasedConvolution(tensors, kTopName, {.stride = kTopWindow.stride});
  for (int level = 0; level < 4; ++level) {
    laterals_.push_back(BiasedConvolution(tensors, LateralName(level), {}));
    outputs_.push_back(BiasedConvolution(tensors, LevelName(level), {}));
  }
  for (const AttentionPlace place : table.options.attention) {
    const std::string name = AttentionName(place);
    if (!tensors.contains(name + ".out.weight")) continue;
    if (table.options.efficient) {
      attention_.try_emplace(place, EfficientAttention(tensors, name, table.options.heads,
                                                       table.options.softmax ? "softmax" : "scaling"));
    } else {
      attention_.try_emplace(place, NonLocal(tensors, name, table.options.heads, table.options.softmax));
    }
  }
}

void Pyramid::Attend(AttentionPlace place, FeatureMap& x) const {
  const auto found = attention_.find(place);
  if (found == attention_.end()) return;
  // Padding is ignored, and zero in the result.
  x.values = found->second(Floats(x.values, type_), x.extents.AsValid(x.values.device()));
}

void Pyramid::Clean(FeatureMap& x) const {
  if (exact_) x.extents.ZeroBeyond(x.values);
}

std::array<FeatureMap, 4> Pyramid::Stages(const FeatureMap& pictures) const {
  std::array<FeatureMap, 4> stages;
  FeatureMap x = backbone_.Stem(pictures);
  for (int stage = 0; stage < 4; ++stage) {
    x = backbone_.Stage(stage, std::move(x));
    if (stage == 2) Attend(AttentionPlace::kRes3, x);
    if (stage == 3) Attend(AttentionPlace::kRes4, x);
    // Does not alias the stage's input: a stage starts with a projected shortcut, which has its own memory.
    stages[static_cast<size_t>(stage)] = x;
  }
  return stages;
}

std::optional<FeatureMap> Pyramid::Top(const FeatureMap& res4) const {
  if (!paper_) return std::nullopt;
  FeatureMap top{(*top_)(res4.values), res4.extents.After(kTopWindow)};
  Clean(top);
  Attend(AttentionPlace::kFpn5, top);
  return top;
}

FeatureMap Pyramid::Merged(int level, const FeatureMap& stage, const std::optional<FeatureMap>& above) const {
  const Convolution& lateral = laterals_[static_cast<size_t>(level)];
  FeatureMap merged{{}, stage.extents};
  if (above) {
    const at::Tensor doubled =
        at::upsample_nearest2d(above->values, {stage.values.size(2), stage.values.size(3)});
    merged.values = lateral.AddedTo(doubled, stage.values);
  } else {
    merged.values = lateral(stage.values);
  }
  Clean(merged);
  return merged;
}

std::vector<FeatureMap> Pyramid::operator()(const FeatureMap& pictures) const {
  std::array<FeatureMap, 4> stages = Stages(pictures);
  std::optional<FeatureMap> above = Top(stages[3]);
  std::vector<FeatureMap> levels(paper_ ? 4 : 5);
  for (int level = 3; level >= 0; --level) {
    const auto index = static_cast<size_t>(level);
    above = Merged(level, stages[index], above);
    stages[index].values.reset();
    FeatureMap& out = levels[index];
    out = {outputs_[index](above->values), above->extents};
    Clean(out);
    if (level == 3 && !paper_) {
      const at::Tensor sparse =
          at::slice(at::slice(out.values, 2, 0, std::nullopt, 2), 3, 0, std::nullopt, 2);
      levels[4] = {sparse.contiguous(at::MemoryFormat::ChannelsLast), out.extents.After(kTopWindow)};
      Attend(AttentionPlace::kFpn5, levels[4]);
    }
    Attend(PyramidPlace(level), out);
  }
  return levels;
}

}  // namespace saccade::models
