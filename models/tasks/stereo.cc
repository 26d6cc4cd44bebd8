#include "models/tasks/stereo.h"

#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <c10/core/InferenceMode.h>

#include <array>

#include "models/api/attention_probe.h"
#include "models/tasks/check_batch.h"
#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

TaskResult Match(const Description& description, const at::Tensor& pixels, const Placement& placement,
                 const StereoNetwork& network) {
  if (!AllFinite(pixels)) return NotFiniteInput();
  const Size bucket = placement.bucket;
  const at::Tensor disparities =
      network(pixels.reshape({2, 3, bucket.height, bucket.width}), placement.scaled);
  if (!AllFinite(disparities)) return NotFiniteOutput(description.architecture, "a disparity");
  return DisparityAsSent(disparities, placement);
}

}  // namespace

std::vector<TaskResult> MatchStereo(const Description& description, const Batch& batch,
                                    const StereoNetwork& network) {
  const c10::InferenceMode inference;
  CheckBatch(description, batch);
  std::vector<TaskResult> results;
  results.reserve(batch.placements.size());
  for (size_t i = 0; i < batch.placements.size(); ++i) {
    AttentionProbe::StartAt(i);
    results.push_back(
        Match(description, batch.pixels[static_cast<int64_t>(i)], batch.placements[i], network));
  }
  return results;
}

Disparity DisparityAsSent(const at::Tensor& disparities, const Placement& placement) {
  const auto [sent, scaled] = std::pair(placement.sent, placement.scaled);
  at::Tensor seen = disparities.narrow(0, 0, scaled.height).narrow(1, 0, scaled.width).contiguous();
  if (sent != scaled) {
    seen = at::upsample_bilinear2d(seen.view({1, 1, scaled.height, scaled.width}), {sent.height, sent.width},
                                   /*align_corners=*/false)
               .mul_(static_cast<double>(sent.width) / static_cast<double>(scaled.width))
               .contiguous();
  }
  const auto* values = seen.const_data_ptr<float>();
  return {.height = sent.height, .width = sent.width, .values = {values, values + sent.height * sent.width}};
}

at::Tensor DepthAsSent(const at::Tensor& depth, const Placement& placement, Interpolation filter) {
  const auto resized = [filter](const at::Tensor& map, Size size) {
    const at::Tensor whole = map.contiguous().view({1, 1, map.size(0), map.size(1)});
    const std::array<int64_t, 2> sides = {size.height, size.width};
    const at::Tensor made = filter == Interpolation::kBicubic
                                ? at::upsample_bicubic2d(whole, sides, /*align_corners=*/false)
                                : at::upsample_bilinear2d(whole, sides, /*align_corners=*/false);
    return made.view({size.height, size.width});
  };
  const Size scaled = placement.scaled;
  if (scaled == placement.bucket) return resized(depth, placement.sent).clamp_min(0).contiguous();
  const at::Tensor seen = resized(depth, placement.bucket)
                              .narrow(0, placement.top, scaled.height)
                              .narrow(1, placement.left, scaled.width);
  return resized(seen, placement.sent).clamp_min(0).contiguous();
}

}  // namespace saccade::models
