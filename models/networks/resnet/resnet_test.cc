#include "models/networks/resnet/resnet.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

ResnetTable Narrow() {
  ResnetTable table;
  table.blocks = {2, 1, 2, 1};
  table.width = 16;
  return table;
}

ResnetTable NarrowMsra() {
  ResnetTable table = Narrow();
  table.strides = {1, 2, 1, 1};
  table.dilations = {1, 1, 2, 4};
  table.stride_on_first = true;
  table.pool_ceil = true;
  return table;
}

ResnetTable NarrowResnext() {
  ResnetTable table = Narrow();
  table.groups = 4;
  table.width_per_group = 32;
  table.stem_kernel = 3;
  table.pool_kernel = 2;
  return table;
}

TensorMap Tensors(const ResnetTable& table) {
  Ledger ledger;
  Size size = RecordStem(table, "", Size{64, 64}, ledger);
  for (int stage = 0; stage < 4; ++stage) size = RecordStage(table, stage, "", size, ledger);
  TensorMap tensors = testing::RandomTensors(ledger.tensors());
  // Keeps residual sums from doubling the signal in every block.
  for (auto& [name, tensor] : tensors) {
    if (name.ends_with("bn3.weight")) tensor.mul_(0.5);
  }
  return tensors;
}

// The same network in float64, layer by layer.
class Eager {
 public:
  Eager(const ResnetTable& table, const TensorMap& tensors) : table_(table) {
    for (const auto& [name, tensor] : tensors) tensors_[name] = tensor.to(at::kDouble);
  }

  at::Tensor Stage(int stages, const at::Tensor& pictures) const {
    at::Tensor x = Normed("conv1", "bn1", pictures, 2, 1, 1).clamp_min(0);
    const int64_t pool = table_.pool_kernel;
    x = at::max_pool2d(x, pool, 2, pool == 3 ? 1 : 0, 1, table_.pool_ceil);
    for (int stage = 0; stage < stages; ++stage) {
      for (const Bottleneck& block : StageBlocks(table_, stage, "")) x = Block(block, x);
    }
    return x;
  }

 private:
  at::Tensor Normed(const std::string& convolution, const std::string& norm, const at::Tensor& x,
                    int64_t stride, int64_t dilation, int64_t groups) const {
    const at::Tensor& weight = tensors_.at(convolution + ".weight");
    const int64_t padding = dilation * (weight.size(2) / 2);
    const auto get = [&](const char* part) { return tensors_.at(norm + part); };
    return at::batch_norm(at::conv2d(x, weight, {}, stride, padding, dilation, groups), get(".weight"),
                          get(".bias"), get(".running_mean"), get(".running_var"), false, 0.1, 1e-5, false);
  }

  at::Tensor Block(const Bottleneck& block, const at::Tensor& x) const {
    const std::string& name = block.name;
    const int64_t first = block.stride_on_first ? block.stride : 1;
    const int64_t second = block.stride_on_first ? 1 : block.stride;
    at::Tensor y = Normed(name + ".conv1", name + ".bn1", x, first, 1, 1).clamp_min(0);
    y = Normed(name + ".conv2", name + ".bn2", y, second, block.dilation, block.groups).clamp_min(0);
    y = Normed(name + ".conv3", name + ".bn3", y, 1, 1, 1);
    const at::Tensor shortcut =
        block.projected ? Normed(name + ".downsample.0", name + ".downsample.1", x, block.stride, 1, 1) : x;
    return y.add(shortcut).clamp_min(0);
  }

  ResnetTable table_;
  TensorMap tensors_;
};

double RelativeError(const at::Tensor& got, const at::Tensor& expected) {
  return got.to(at::kDouble).sub(expected).norm().item<double>() / expected.norm().item<double>();
}

FeatureMap Pictures(const at::Tensor& pixels, const std::vector<Size>& sizes) {
  return {pixels, Extents(sizes)};
}

FeatureMap Through(const Resnet& resnet, const FeatureMap& pictures, int stages) {
  FeatureMap x = resnet.Stem(pictures);
  for (int stage = 0; stage < stages; ++stage) x = resnet.Stage(stage, x);
  return x;
}

TEST(Resnet, AgreesWithEagerLayers) {
  for (const ResnetTable& table : {Narrow(), NarrowMsra(), NarrowResnext()}) {
    const TensorMap tensors = Tensors(table);
    const Resnet resnet(table, "", tensors, /*exact=*/false);
    const Eager eager(table, tensors);
    const at::Tensor pixels = at::randn({2, 3, 75, 93});
    const FeatureMap input = Pictures(pixels, {{75, 93}, {75, 93}});
    for (const int stages : {0, 2, 4}) {
      const at::Tensor expected = eager.Stage(stages, pixels.to(at::kDouble));
      const FeatureMap got = Through(resnet, input, stages);
      ASSERT_EQ(got.values.sizes(), expected.sizes());
      EXPECT_LT(RelativeError(got.values, expected), 1e-5);
      EXPECT_EQ(got.extents[1], (Size{expected.size(2), expected.size(3)}));
    }
  }
}

TEST(Resnet, AStageLeavesItsInputAlone) {
  const Resnet resnet(Narrow(), "", Tensors(Narrow()), false);
  const FeatureMap x = resnet.Stem(Pictures(at::randn({1, 3, 64, 64}), {{64, 64}}));
  const at::Tensor before = x.values.clone();
  resnet.Stage(0, x);
  EXPECT_TRUE(x.values.equal(before));
}

// Compares two pictures in a bucket larger than both with each of them alone.
TEST(Resnet, ExactIsAsIfThereWereNoPadding) {
  for (const ResnetTable& table : {Narrow(), NarrowMsra(), NarrowResnext()}) {
    const TensorMap tensors = Tensors(table);
    const Resnet exact(table, "", tensors, true);
    const Resnet plain(table, "", tensors, false);
    const std::vector<Size> sizes = {{75, 93}, {50, 101}};
    const at::Tensor pixels = at::zeros({2, 3, 96, 128});
    for (int64_t i = 0; i < 2; ++i) {
      const Size size = sizes[static_cast<size_t>(i)];
      pixels[i].narrow(1, 0, size.height).narrow(2, 0, size.width).normal_();
    }
    const FeatureMap padded = Through(exact, Pictures(pixels, sizes), 4);
    for (int64_t i = 0; i < 2; ++i) {
      const Size size = sizes[static_cast<size_t>(i)];
      const at::Tensor alone = pixels.narrow(0, i, 1).narrow(2, 0, size.height).narrow(3, 0, size.width);
      const at::Tensor expected = Through(plain, Pictures(alone, {size}), 4).values;
      const Size valid = padded.extents[i];
      ASSERT_EQ(valid, (Size{expected.size(2), expected.size(3)}));
      const at::Tensor got = padded.values.narrow(0, i, 1);
      EXPECT_LT(
          RelativeError(got.narrow(2, 0, valid.height).narrow(3, 0, valid.width), expected.to(at::kDouble)),
          1e-5);
      EXPECT_EQ(got.narrow(2, valid.height, got.size(2) - valid.height).abs().sum().item<float>(), 0);
      EXPECT_EQ(got.narrow(3, valid.width, got.size(3) - valid.width).abs().sum().item<float>(), 0);
    }
  }
}

TEST(Resnet, APictureDoesNotDependOnItsBatch) {
  const Resnet resnet(Narrow(), "", Tensors(Narrow()), false);
  const at::Tensor pixels = at::randn({4, 3, 96, 128});
  const FeatureMap together = Through(resnet, Pictures(pixels, {4, Size{96, 128}}), 4);
  for (int64_t i = 0; i < 4; ++i) {
    const FeatureMap alone = Through(resnet, Pictures(pixels.narrow(0, i, 1), {Size{96, 128}}), 4);
    EXPECT_TRUE(alone.values.equal(together.values.narrow(0, i, 1)));
  }
}

// Expected counts are those of torchvision's resnet50, resnet101 and resnext101_32x4d without their
// classifiers.
TEST(Resnet, HasAsManyParametersAsTorchvisions) {
  const auto count = [](const ResnetTable& table) {
    Ledger ledger;
    Size size = RecordStem(table, "", Size{224, 224}, ledger);
    for (int stage = 0; stage < 4; ++stage) size = RecordStage(table, stage, "", size, ledger);
    EXPECT_EQ(size, (Size{7, 7}));
    return ledger.counts();
  };
  ResnetTable table;
  EXPECT_EQ(count(table).AllParameters(), 25'557'032 - 2'049'000);
  EXPECT_EQ(count(table).Madds(), 4'089'184'256 - 2'048'000);
  table.blocks = {3, 4, 23, 3};
  EXPECT_EQ(count(table).AllParameters(), 44'549'160 - 2'049'000);
  table.groups = 32;
  table.width_per_group = 4;
  EXPECT_EQ(count(table).AllParameters(), 44'177'704 - 2'049'000);
}

}  // namespace
}  // namespace saccade::models
