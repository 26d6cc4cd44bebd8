#include "models/networks/rc3d/suppression.h"

#include <ATen/ops/empty.h>

#include "kernels/nms/nms.h"
#include "models/networks/tensors.h"

namespace saccade::models {
namespace {

// Represents segments as boxes of equal height.
at::Tensor Boxes(const std::vector<Segment>& segments) {
  const at::Tensor boxes = at::empty({static_cast<int64_t>(segments.size()), 4}, at::kFloat);
  auto* out = boxes.mutable_data_ptr<float>();
  for (const Segment& segment : segments) {
    for (const float side : {segment.start, 0.0F, segment.end, 1.0F}) *out++ = side;
  }
  return boxes;
}

}  // namespace

void Scored::Add(const Segment& segment, float score, int64_t label) {
  segments.push_back(segment);
  scores.push_back(score);
  labels.push_back(label);
}

Scored Suppressed(const Scored& all, double threshold, int64_t max) {
  const at::Tensor kept =
      kernels::batched_nms(Boxes(all.segments), AsTensor(all.scores), AsTensor(all.labels), threshold, max);
  Scored best;
  const auto* index = kept.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < kept.numel(); ++i) {
    const auto from = static_cast<size_t>(index[i]);
    best.Add(all.segments[from], all.scores[from], all.labels[from]);
  }
  return best;
}

}  // namespace saccade::models
