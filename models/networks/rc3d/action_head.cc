#include "models/networks/rc3d/action_head.h"

#include <ATen/ops/mean.h>
#include <ATen/ops/softmax.h>

#include "models/device/fetching.h"
#include "models/networks/rc3d/suppression.h"
#include "models/networks/rc3d/table.h"

namespace saccade::models {
namespace {

at::Tensor Rows(const Fetching& maps) { return maps.Wait().to(at::kFloat).flatten(1).contiguous(); }

}  // namespace

ActionHead::ActionHead(const TensorMap& tensors)
    : logits_(LinearConvolution(tensors, kHeadLogits)), offsets_(LinearConvolution(tensors, kHeadOffsets)) {}

ActionNumbers ActionHead::operator()(const at::Tensor& features) const {
  const at::Tensor means = features.flatten(2).mean(2).view({features.size(0), features.size(1), 1, 1});
  const Fetching logits(logits_(means));
  const Fetching offsets(offsets_(means));
  return {at::softmax(Rows(logits), 1), Rows(offsets)};
}

Actions FindActions(const ActionNumbers& numbers, const std::vector<Segment>& proposals, int64_t frames,
                    const Rc3dOptions& options) {
  const auto threshold = static_cast<float>(options.score_threshold);
  const float* score = numbers.scores.const_data_ptr<float>();
  const float* offsets = numbers.offsets.const_data_ptr<float>();
  Scored all;
  for (const Segment& proposal : proposals) {
    for (int64_t label = 0; label < options.classes; ++label, ++score, offsets += 2) {
      const bool background = label == 0;
      if (background || *score <= threshold) continue;
      const Segment segment = Clipped(Moved(proposal, offsets, kActionSegmentWeights), frames);
      if (segment.length() >= kMinSegmentFrames) all.Add(segment, *score, label);
    }
  }
  const Scored best = Suppressed(all, options.nms_threshold, options.detections);
  Actions actions{.items = {}, .frames = frames};
  for (size_t i = 0; i < best.segments.size(); ++i) {
    actions.items.push_back({best.segments[i].start, best.segments[i].end, best.scores[i], best.labels[i]});
  }
  return actions;
}

}  // namespace saccade::models
