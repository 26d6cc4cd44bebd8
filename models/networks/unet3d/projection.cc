#include "models/networks/unet3d/projection.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <utility>

#include "models/layers/device.h"
#include "models/networks/unet3d/maps.h"

namespace saccade::models {
namespace {

// A result sees 11 positions to each side in height and width: one for a convolution at full resolution,
// which are two; one half-sized map's for those there; and so on. Rounded up, so that windows can be pooled.
constexpr int64_t kHalo = 12;

}  // namespace

Projection::Projection(const UnetOptions& options, const TensorMap& tensors)
    : target_(tensors.target),
      step_(ProjectingUnet(options).step),
      tile_(options.tile),
      blocks_(MakeBlocks(ProjectingUnet(options), tensors)),
      output_(BiasedConvolution(tensors, ProjectingUnet(options).prefix + "output", {})) {}

Tiling Projection::Cut(const Sides& sides) const { return {sides, {0, tile_, tile_}, kUnetMultiple}; }

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
  const Sides sides = SidesOf(volume);
  const Tiling tiling = Cut(sides);
  at::Tensor plane = at::empty({1, 1, 1, sides[1], sides[2]}, at::kFloat);
  for (int64_t i = 0; i < tiling.count(); ++i) {
    const Part core = tiling.Core(i);
    const Part window = tiling.Around(core, kHalo);
    const at::Tensor logits = View(Weigh(TakenPart(volume, window, target_)), core.From(window));
    const at::Tensor weights = at::softmax(Fetched(logits), 2);
    const Part place{.begin = {0, core.begin[1], core.begin[2]}, .size = {1, core.size[1], core.size[2]}};
    View(plane, place).copy_((weights * View(volume, core)).sum(2, /*keepdim=*/true));
    progress.Add(WorkOf(window.size));
  }
  return plane;
}

double Projection::WorkOf(const Sides& window) const {
  double work = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Part map{.begin = {}, .size = window};
    for (size_t level = 0; level < std::min(i, 4 - i); ++level) map = map.Over(step_);
    work += blocks_[i].work() * static_cast<double>(Positions(map.size));
  }
  return work;
}

double Projection::Work(const Sides& sides) const {
  const Tiling tiling = Cut(sides);
  return static_cast<double>(tiling.count()) * WorkOf(tiling.Around(tiling.Core(0), kHalo).size);
}

}  // namespace saccade::models
