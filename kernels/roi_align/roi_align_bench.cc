#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/grid_sampler.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <string>
#include <vector>

#include "kernels/bench/bench.h"
#include "kernels/roi_align/roi_align.h"

namespace saccade::kernels {
namespace {

constexpr int64_t kRatio = 2;

struct Head {
  const char* name;
  int64_t regions, channels, height, width, bins;
};

// For regions inside the map, where a sampler that repeats the border gives the same result: samples all
// regions as one tall image, then averages.
at::Tensor Eager(const at::Tensor& map, const at::Tensor& rois, int64_t bins) {
  const int64_t samples = bins * kRatio;
  const at::Tensor steps = (at::arange(samples, rois.options()) + 0.5) / samples;
  const auto axis = [&](int64_t column, int64_t size) {
    const at::Tensor low = rois.narrow(1, column, 1);
    const at::Tensor pixel = low + (rois.narrow(1, column + 2, 1) - low) * steps;
    return pixel * (2.0 / static_cast<double>(size - 1)) - 1;
  };
  const std::vector<int64_t> shape = {rois.size(0), samples, samples};
  const at::Tensor x = axis(1, map.size(3)).unsqueeze(1).expand(shape);
  const at::Tensor y = axis(2, map.size(2)).unsqueeze(2).expand(shape);
  const at::Tensor grid = at::stack({x, y}, 3).view({1, -1, samples, 2});
  const at::Tensor sampled =
      at::grid_sampler(map, grid, /*bilinear*/ 0, /*border*/ 1, /*align_corners=*/true);
  return at::avg_pool2d(sampled, {kRatio, kRatio})
      .view({map.size(1), rois.size(0), bins, bins})
      .transpose(0, 1)
      .contiguous();
}

BenchInputs Make(const Head& head, at::MemoryFormat format) {
  const at::Tensor map = at::randn({1, head.channels, head.height, head.width}).contiguous(format);
  // Regions whose sample positions float32 represents exactly, so that their rounding does not affect the
  // comparison.
  const at::Tensor extent = (at::rand({head.regions, 2}) * 2 + 1).floor() * 7;
  const at::Tensor low =
      at::rand({head.regions, 2}) *
      (at::stack({at::zeros({}) + head.width - 1, at::zeros({}) + head.height - 1}) - extent);
  const at::Tensor rois = at::cat({at::zeros({head.regions, 1}), low.floor(), low.floor() + extent}, 1);
  BenchInputs inputs;
  inputs.expected = Eager(map.to(at::kDouble).contiguous(), rois.to(at::kDouble), head.bins);
  inputs.candidates = {{"eager", [=] { return Eager(map, rois, head.bins); }},
                       {"saccade", [=] { return roi_align(map, rois, 1, head.bins, head.bins, kRatio); }}};
  return inputs;
}

// The heads of a detector, on a pyramid level for 800 x 1088 pixels.
void AddCases(std::vector<BenchCase>* cases) {
  for (const Head& head :
       {Head{"box head", 1000, 256, 100, 136, 7}, Head{"mask head", 100, 256, 100, 136, 14}}) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      const auto results = static_cast<double>(head.regions * head.channels * head.bins * head.bins);
      cases->push_back(
          {.op = "roi_align",
           .variant =
               std::string("float32") + (format == at::MemoryFormat::Contiguous ? "" : ", channels-last"),
           .shape = std::string(head.name) + " " + std::to_string(head.regions) + "x" +
                    std::to_string(head.channels) + "x" + std::to_string(head.bins) + "x" +
                    std::to_string(head.bins),
           // Four pixels per sample.
           .madds = results * kRatio * kRatio * 4,
           .min_bytes = 4 * (results + static_cast<double>(head.channels * head.height * head.width)),
           .make = [=] { return Make(head, format); }});
    }
  }
}

const BenchRegistration registered(AddCases);

}  // namespace
}  // namespace saccade::kernels
