#include "models/networks/rc3d/table.h"

#include <algorithm>
#include <cmath>

namespace saccade::models {
namespace {

constexpr int kClipStages = 3;

// Records the proposal head: a 3x3x3 convolution, and the outputs computed from its maxima.
void RecordProposals(const Rc3dOptions& options, const ResnetTable& backbone, const Sides& map,
                     Ledger& ledger) {
  const auto anchors = static_cast<int64_t>(options.anchors.size());
  const int64_t channels = backbone.Channels(kClipStages - 1) / 2;
  const auto biased = [&](const char* name, int64_t inputs, int64_t outputs, int64_t kernel,
                          const Sides& output) {
    ledger.Convolution(
        name, {.inputs = inputs, .outputs = outputs, .kernel = {kernel, kernel, kernel}, .bias = true},
        output);
  };
  biased(kProposalConvolution, backbone.Channels(kClipStages - 1), channels, 3, map);
  const Sides steps = {map.front(), 1, 1};
  biased(kProposalLogits, channels, anchors, 1, steps);
  biased(kProposalOffsets, channels, 2 * anchors, 1, steps);
}

// Records the attention after a stage, if there is one.
void RecordAttention(const Rc3dOptions& options, int stage, const Sides& map, Ledger& ledger) {
  const std::string attention = AttentionBehind(options, stage);
  if (attention.empty()) return;
  ledger.EfficientAttention(attention, Rc3dBackbone(options).Channels(stage), options.key_channels,
                            options.value_channels, /*reprojected=*/true, map);
}

}  // namespace

std::string AttentionBehind(const Rc3dOptions& options, int stage) {
  const std::string place = "res" + std::to_string(stage + 1);
  const auto& places = options.attention;
  return std::find(places.begin(), places.end(), place) == places.end() ? "" : "attention." + place;
}

ResnetTable Rc3dBackbone(const Rc3dOptions& options) {
  ResnetTable table;
  table.blocks = options.blocks;
  table.width = static_cast<int64_t>(std::lround(static_cast<double>(table.width) * options.width));
  return table;
}

Ledger RecordRc3d(const Rc3dOptions& options) {
  Ledger ledger;
  const ResnetTable backbone = Rc3dBackbone(options);
  Sides map = RecordStem(backbone, "", Sides{options.frames, options.size, options.size}, ledger);
  for (int stage = 0; stage < kClipStages; ++stage) {
    map = RecordStage(backbone, stage, "", map, ledger);
    RecordAttention(options, stage, map, ledger);
  }
  RecordProposals(options, backbone, map, ledger);

  // Every proposal is pooled to its own bins. They are counted as one map, concatenated along time: a stride
  // of 2 halves it as it halves each of them.
  Sides regions(kRegionBins.begin(), kRegionBins.end());
  regions.front() *= options.proposals;
  RecordAttention(options, kClipStages, RecordStage(backbone, kClipStages, "", regions, ledger), ledger);
  const int64_t features = backbone.Channels(kClipStages);
  ledger.Linear(kHeadLogits, features, options.classes, options.proposals);
  ledger.Linear(kHeadOffsets, features, 2 * options.classes, options.proposals);
  return ledger;
}

}  // namespace saccade::models
