#include "models/layers/transposed_convolution.h"

#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace saccade::models {
namespace {

struct Shape {
  int64_t inputs, outputs, depth, height, width;
};

TEST(TransposedConvolution, AgreesWithConvolutionAndBatchNorm) {
  at::manual_seed(1);
  for (const Shape& shape : {Shape{16, 8, 3, 5, 4}, Shape{64, 32, 6, 4, 7}, Shape{8, 24, 1, 1, 1}}) {
    const at::Tensor weight = at::randn({shape.inputs, shape.outputs, 3, 3, 3});
    const Affine affine = {at::rand({shape.outputs}, at::kDouble).add(0.5),
                           at::randn({shape.outputs}, at::kDouble)};
    const at::Tensor x = at::randn({2, shape.inputs, shape.depth, shape.height, shape.width});
    const at::Tensor expected = at::conv_transpose3d(x.to(at::kDouble), weight.to(at::kDouble), {}, 2, 1, 1)
                                    .mul(affine.scale.view({-1, 1, 1, 1}))
                                    .add(affine.shift.view({-1, 1, 1, 1}));
    const TransposedConvolution layer(weight, affine);
    for (const at::Tensor& layout : {x, x.contiguous(at::MemoryFormat::ChannelsLast3d)}) {
      const at::Tensor got = layer(layout);
      ASSERT_EQ(got.sizes(), expected.sizes());
      EXPECT_LT(got.to(at::kDouble).sub(expected).norm().item<double>() / expected.norm().item<double>(),
                1e-6);
    }
  }
}

}  // namespace
}  // namespace saccade::models
