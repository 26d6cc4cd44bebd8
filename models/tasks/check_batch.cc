#include "models/tasks/check_batch.h"

#include <c10/util/Exception.h>

namespace saccade::models {
namespace {

bool Fits(const Placement& placement, Size bucket) {
  const auto within = [](int64_t side, int64_t max) { return side >= 1 && side <= max; };
  return placement.bucket == bucket && within(placement.scaled.height, bucket.height) &&
         within(placement.scaled.width, bucket.width) && placement.sent.height >= 1 &&
         placement.sent.width >= 1;
}

bool FitsDepth(const Placement& placement, int64_t depth) {
  return placement.depth == depth && placement.sent_depth >= 1 && placement.sent_depth <= depth;
}

}  // namespace

void CheckBatch(const Description& description, const Batch& batch) {
  const ImageInput& input = description.input;
  const at::Tensor& pixels = batch.pixels;
  TORCH_CHECK(pixels.device().is_cpu() && pixels.scalar_type() == at::kFloat, description.architecture,
              ": expected a float32 batch on the CPU, got ", pixels.scalar_type(), " on ", pixels.device());
  const bool flat = input.medium == Medium::kPictures;
  TORCH_CHECK(pixels.dim() == (flat ? 4 : 5) && pixels.size(0) >= 1 && pixels.size(1) == input.channels(),
              description.architecture, ": expected a batch of shape [B, ", input.channels(),
              flat ? "" : ", D", ", H, W] with B >= 1, got ", pixels.sizes());
  const Size bucket{pixels.size(-2), pixels.size(-1)};
  const int64_t depth = flat ? 1 : pixels.size(2);
  TORCH_CHECK(!IsFixedSize(input) || bucket == (Size{input.height, input.width}), description.architecture,
              ": expected pictures of ", input.height, " x ", input.width, ", got ", bucket.height, " x ",
              bucket.width);
  TORCH_CHECK(static_cast<int64_t>(batch.placements.size()) == pixels.size(0), description.architecture,
              ": there are ", batch.placements.size(), " placements for ", pixels.size(0), " pictures");
  for (const Placement& placement : batch.placements) {
    TORCH_CHECK(Fits(placement, bucket), description.architecture, ": a picture of ", placement.scaled.height,
                " x ", placement.scaled.width, " in a bucket of ", placement.bucket.height, " x ",
                placement.bucket.width, " does not fit a batch of ", bucket.height, " x ", bucket.width);
    TORCH_CHECK(FitsDepth(placement, depth), description.architecture, ": ", placement.sent_depth, " of ",
                placement.depth, " frames or planes do not fit a batch of ", depth);
  }
}

}  // namespace saccade::models
