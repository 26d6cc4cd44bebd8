#include "models/networks/unet3d/projection.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/common/parallel.h"
#include "models/device/transfer.h"
#include "models/networks/unet3d/maps.h"

namespace saccade::models {
namespace {

// Reach of the network in positions. Its five convolutions reach 1, 2, 4, 2 and 1 positions of full
// resolution to each side, and the grid of pooled positions adds 1: 11 in all, rounded up so that windows can
// be pooled.
constexpr int64_t kProjectionHalo = 12;

// A window has at most so many positions, unless the smallest tile makes it larger. The network's widest map
// has 24 channels at full resolution and width 1: 0.75 GiB in float32 for a window of this size.
constexpr int64_t kMaxWindowPositions = int64_t{1} << 23;

// Returns the mean of one column of values, weighted by the softmax of `logits`. `stride` is the distance of
// its values.
float Average(const float* logits, const float* values, int64_t depth, int64_t stride) {
  float peak = -std::numeric_limits<float>::infinity();
  for (int64_t d = 0; d < depth; ++d) peak = std::max(peak, logits[d * stride]);
  double total = 0;
  double weighted = 0;
  for (int64_t d = 0; d < depth; ++d) {
    const double weight = std::exp(logits[d * stride] - peak);
    total += weight;
    weighted += weight * values[d * stride];
  }
  return static_cast<float>(weighted / total);
}

// Returns the averages of all columns of [1, 1, D, h, w], as [1, 1, 1, h, w].
at::Tensor Averages(const at::Tensor& logits, const at::Tensor& values) {
  const VolumeSides sides = SidesOf(logits);
  const int64_t columns = sides[1] * sides[2];
  at::Tensor plane = at::empty({1, 1, 1, sides[1], sides[2]}, at::kFloat);
  const at::Tensor dense_logits = logits.contiguous();
  const at::Tensor dense_values = values.contiguous();
  const auto* from = dense_logits.const_data_ptr<float>();
  const auto* of = dense_values.const_data_ptr<float>();
  auto* to = plane.mutable_data_ptr<float>();
  kernels::TorchParallel().run(columns, 1024, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t i = begin; i < end; ++i) to[i] = Average(from + i, of + i, sides[0], columns);
  });
  return plane;
}

}  // namespace

Tiling ProjectionTiling(const VolumeSides& sides, int64_t tile) {
  const auto positions = [&](int64_t core) {
    const int64_t window = core + 2 * kProjectionHalo;
    return sides[0] * std::min(window, sides[1]) * std::min(window, sides[2]);
  };
  tile = UnetSide(tile);
  while (tile > kUnetMultiple && positions(tile) > kMaxWindowPositions) tile -= kUnetMultiple;
  return {sides, {0, tile, tile}, kUnetMultiple};
}

Projection::Projection(const UnetOptions& options, const TensorMap& tensors)
    : target_(tensors.target),
      step_(ProjectingUnet(options).step),
      tile_(options.tile),
      blocks_(MakeBlocks(ProjectingUnet(options), tensors)),
      output_(BiasedConvolution(tensors, ProjectingUnet(options).prefix + "output", {})) {}

at::Tensor Projection::Weigh(const at::Tensor& window) const {
  std::vector<at::Tensor> skips;
  at::Tensor x = window;
  for (size_t level = 0; level < 2; ++level) {
    skips.push_back(blocks_[level](x));
    x = Pooled(skips.back(), step_);
  }
  x = blocks_[2](std::move(x));
  for (size_t level = 2; level-- > 0;) {
    x = Joined(skips[level], x);
    skips.pop_back();
    x = blocks_[4 - level](std::move(x));
  }
  return output_(x);
}

at::Tensor Projection::operator()(const at::Tensor& volume, Progress& progress) const {
  const VolumeSides sides = SidesOf(volume);
  const Tiling tiling = ProjectionTiling(sides, tile_);
  at::Tensor plane = at::empty({1, 1, 1, sides[1], sides[2]}, at::kFloat);
  for (int64_t i = 0; i < tiling.count(); ++i) {
    const Part core = tiling.Core(i);
    const Part window = tiling.Around(core, kProjectionHalo);
    const at::Tensor logits = View(Weigh(TakenPart(volume, window, target_)), core.From(window));
    const Part place{.begin = {0, core.begin[1], core.begin[2]}, .size = {1, core.size[1], core.size[2]}};
    View(plane, place).copy_(Averages(Fetched(logits), View(volume, core)));
    progress.Add(WorkOf(window.size));
  }
  return plane;
}

double Projection::WorkOf(const VolumeSides& window) const {
  double work = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Part map{.begin = {}, .size = window};
    for (size_t level = 0; level < std::min(i, 4 - i); ++level) map = map.Over(step_);
    work += blocks_[i].work() * static_cast<double>(Positions(map.size));
  }
  return work;
}

double Projection::Work(const VolumeSides& sides) const {
  const Tiling tiling = ProjectionTiling(sides, tile_);
  return static_cast<double>(tiling.count()) * WorkOf(tiling.Around(tiling.Core(0), kProjectionHalo).size);
}

}  // namespace saccade::models
