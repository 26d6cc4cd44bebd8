#include "models/layers/convolution_ways.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace saccade::models {
namespace {

TEST(ConvolutionWays, ComputeTheSame) {
  at::manual_seed(2);
  for (const int64_t batch : {1, 3}) {
    for (const int64_t groups : {1, 2}) {
      for (const int64_t dilation : {1, 2}) {
        const at::Tensor x = at::randn({batch, 8, 13, 10}).contiguous(at::MemoryFormat::ChannelsLast);
        const at::Tensor weight = at::randn({6, 8 / groups, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
        const at::Tensor bias = at::randn({6});
        const PackedWeight::Geometry geometry{.padding = {dilation, dilation},
                                              .stride = {2, 2},
                                              .dilation = {dilation, dilation},
                                              .groups = groups};
        const at::Tensor expected = at::conv2d(x, weight, bias, 2, dilation, dilation, groups);
        for (const ConvolutionWay way : kConvolutionWays) {
          const at::Tensor got = Convolved(way, x, weight, bias, geometry);
          EXPECT_TRUE(got.allclose(expected, 1e-4, 1e-4)) << static_cast<int>(way);
          EXPECT_TRUE(got.is_contiguous(at::MemoryFormat::ChannelsLast)) << static_cast<int>(way);
        }
      }
    }
  }
}

TEST(ConvolutionWays, TakeVolumes) {
  const at::Tensor x = at::randn({2, 4, 5, 6, 7}).contiguous(at::MemoryFormat::ChannelsLast3d);
  const at::Tensor weight = at::randn({3, 4, 3, 3, 3});
  const at::Tensor bias = at::randn({3});
  const PackedWeight::Geometry geometry{
      .padding = {1, 1, 1}, .stride = {1, 2, 2}, .dilation = {1, 1, 1}, .groups = 1};
  const at::Tensor expected = at::conv3d(x, weight, bias, {1, 2, 2}, {1, 1, 1});
  for (const ConvolutionWay way : kConvolutionWays)
    EXPECT_TRUE(Convolved(way, x, weight, bias, geometry).allclose(expected, 1e-4, 1e-4));
}

}  // namespace
}  // namespace saccade::models
