#include "models/networks/mobile/modules.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <vector>

#include "models/device/transfer.h"
#include "models/layers/calibration.h"

namespace saccade::models {
namespace {

// Whether convolutions alone read what the layers within the module compute.
bool IsPlain(const Block& block) { return block.module == Module::kPlain && block.attended == 0; }

// Whether the filter reads the module's input too.
bool KeepsInput(const Block& block) { return block.expanded() == 0 || block.module == Module::kBase; }

ConvolutionOptions Depthwise(const Block& block) {
  return {.stride = block.stride,
          .groups = block.filtered(),
          .activation = Activation::kRelu6,
          .stays_int8 = block.module == Module::kPlain};
}

}  // namespace

Convolution MakeConvolution(const TensorMap& tensors, const std::string& prefix,
                            const ConvolutionOptions& options) {
  return NormedConvolution(tensors, prefix + "conv", prefix + "bn", options);
}

namespace {

// Whether the module's convolutions can be computed together.
bool CanBeFused(const Block& block, const TensorMap& tensors) {
  const Target& target = tensors.target;
  return target.packed() && target.precision != Precision::kInt8 && target.calibration == nullptr &&
         kernels::InvertedResidual::Supports(TypeOf(target), block.inputs);
}

kernels::InvertedResidual Fused(const Block& block, const TensorMap& tensors) {
  kernels::InvertedResidual::Weights weights;
  const auto fold = [&](const std::string& layer, const Affine& affine, at::Tensor& weight,
                        at::Tensor& bias) {
    weight = ScaledWeight(tensors.at(layer + ".conv.weight"), affine.scale);
    bias = affine.shift.to(at::kFloat);
  };
  const auto fold_all = [&](const std::string& layer, at::Tensor& weight, at::Tensor& bias) {
    fold(layer, FoldBatchNorm(tensors, layer + ".bn."), weight, bias);
  };
  if (block.expanded() > 0) {
    const std::string expand = ExpandName(block);
    fold(expand, PartOf(FoldBatchNorm(tensors, expand + ".bn."), 0, block.expanded() - block.attended),
         weights.expand, weights.expand_bias);
  }
  fold_all(block.name + ".depthwise", weights.filter, weights.filter_bias);
  fold_all(block.name + ".project", weights.project, weights.project_bias);
  return {weights, block.stride, TypeOf(tensors.target)};
}

// The convolutions that the kernel computes together, in its order.
std::vector<std::string> FusedConvolutions(const Block& block) {
  std::vector<std::string> names;
  if (block.expanded() > 0) names.push_back(ExpandName(block) + ".conv");
  names.push_back(block.name + ".depthwise.conv");
  names.push_back(block.name + ".project.conv");
  return names;
}

// Whether the module's convolutions can be computed together in 8 bits: all of them are quantized.
bool CanBeFusedInInt8(const Block& block, const TensorMap& tensors) {
  const Target& target = tensors.target;
  const std::vector<std::string> names = FusedConvolutions(block);
  return target.packed() && target.precision == Precision::kInt8 &&
         kernels::Int8InvertedResidual::Supports(block.expanded() > 0 ? block.inputs : 0) &&
         std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return tensors.contains(name + kGridsSuffix); });
}

// Has the convolutions be quantized together or not at all. This does not depend on the processor, because
// the weights may be served on another one.
void JoinFused(const Block& block, const TensorMap& tensors) {
  std::vector<std::string> file_names;
  for (const std::string& name : FusedConvolutions(block))
    file_names.push_back(Placed(tensors, name, {}).file_name);
  tensors.target.calibration->Join(block.name, file_names);
}

kernels::ByteGrid ByteGridOf(const Grid& grid) {
  return {.scale = static_cast<float>(grid.scale), .zero = static_cast<int32_t>(grid.zero)};
}

// Where floats stand beside the bytes of an expansion or a filter, all are rounded to the grid of the layer
// behind; elsewhere bytes are on the grid of the layer that makes them.
Grid FilteredGrid(const Block& block, const TensorMap& tensors) {
  const Grid input = Placed(tensors, block.name + ".depthwise.conv", {}).grids->input;
  if (!IsPlain(block) || block.expanded() == 0) return input;
  return Placed(tensors, ExpandName(block) + ".conv", {}).grids->output;
}

// `filtered` is FilteredGrid().
kernels::Int8InvertedResidual FusedInInt8(const Block& block, const TensorMap& tensors,
                                          const Grid& filtered) {
  const auto layer = [&](const std::string& name, const Affine& affine) {
    const at::Tensor scale = Placed(tensors, name + ".conv", {}).weight_scale;
    const Int8Weight weight = Scaled({tensors.at(name + ".conv.weight"), scale}, affine.scale);
    return kernels::Int8InvertedResidual::Layer{
        .weight = weight.values, .scale = weight.scale, .bias = affine.shift.to(at::kFloat)};
  };
  const auto normed = [&](const std::string& name) {
    return layer(name, FoldBatchNorm(tensors, name + ".bn."));
  };
  const std::string depthwise = block.name + ".depthwise";
  const std::string project = block.name + ".project";
  const Int8Grids filter_grids = *Placed(tensors, depthwise + ".conv", {}).grids;
  const Int8Grids project_grids = *Placed(tensors, project + ".conv", {}).grids;
  kernels::Int8InvertedResidual::Weights weights{
      .expand = {},
      .filter = normed(depthwise),
      .project = normed(project),
      .filtered = ByteGridOf(filtered),
      .projected = ByteGridOf(Depthwise(block).stays_int8 ? filter_grids.output : project_grids.input),
      .out = ByteGridOf(project_grids.output)};
  if (block.expanded() > 0) {
    const std::string expand = ExpandName(block);
    weights.expand =
        layer(expand, PartOf(FoldBatchNorm(tensors, expand + ".bn."), 0, block.expanded() - block.attended));
  }
  return {weights, block.stride};
}

// Channels of maps of one size, one behind the other; either may be undefined.
at::Tensor Joined(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? at::cat({a, b}, 1) : a;
}

at::Tensor Dense(const at::Tensor& map) {
  return map.defined() ? map.contiguous(at::MemoryFormat::ChannelsLast) : map;
}

}  // namespace

MobileModule::MobileModule(const Block& block, const MobileOptions& options, const TensorMap& tensors)
    : block_(block), type_(TypeOf(tensors.target)) {
  if (block.attended > 0) {
    const Affine affine = FoldBatchNorm(tensors, ExpandName(block) + ".bn.");
    explicit_.emplace(tensors, ExpandName(block),
                      PartOf(affine, block.expanded() - block.attended, block.attended), options.map);
  }
  if (block.module == Module::kAttention) {
    attention_.emplace(options, tensors, AttentionName(block), options.attention_skip && block.stride == 1);
  }
  if (CanBeFused(block, tensors)) {
    fused_.emplace(Fused(block, tensors));
  } else {
    LoadLayers(tensors);
    if (tensors.target.calibration != nullptr) JoinFused(block, tensors);
  }
  if (CanBeFusedInInt8(block, tensors)) {
    filtered_grid_ = FilteredGrid(block, tensors);
    fused_int8_.emplace(FusedInInt8(block, tensors, filtered_grid_));
  }
}

void MobileModule::LoadLayers(const TensorMap& tensors) {
  layers_.emplace(
      Layers{.expand = std::nullopt,
             .depthwise = MakeConvolution(tensors, block_.name + ".depthwise.", Depthwise(block_)),
             .project = MakeConvolution(tensors, block_.name + ".project.", {.stays_int8 = true})});
  const std::string expand = ExpandName(block_);
  if (block_.attended > 0) {
    const Affine affine = FoldBatchNorm(tensors, expand + ".bn.");
    layers_->expand.emplace(tensors.at(expand + ".conv.weight"),
                            PartOf(affine, 0, block_.expanded() - block_.attended),
                            Placed(tensors, expand + ".conv", {.activation = Activation::kRelu6}));
  } else if (block_.expanded() > 0) {
    layers_->expand = MakeConvolution(tensors, expand + ".",
                                      {.activation = Activation::kRelu6, .stays_int8 = IsPlain(block_)});
  }
}

at::Tensor MobileModule::Attend(const at::Tensor& x) const {
  if (!attention_) return {};
  const at::Tensor attended = (*attention_)(x);
  if (block_.stride == 1) return attended;
  return at::avg_pool2d(attended, block_.stride, block_.stride, 0, /*ceil_mode=*/true,
                        /*count_include_pad=*/false);
}

at::Tensor MobileModule::Kept(const at::Tensor& x) const {
  const at::Tensor attended = explicit_ ? (*explicit_)(x).clamp_(0, 6) : at::Tensor();
  return Joined(attended, KeepsInput(block_) ? x : at::Tensor());
}

at::Tensor MobileModule::ByLayers(const at::Tensor& x, const at::Tensor& input) const {
  const at::Tensor expanded = layers_->expand ? (*layers_->expand)(x) : at::Tensor();
  const at::Tensor features = Joined(layers_->depthwise(Joined(expanded, Kept(x))), Attend(x));
  return block_.skip() ? layers_->project.WithSum(features, input) : layers_->project(features);
}

at::Tensor MobileModule::InInt8(const at::Tensor& input) const {
  const at::Tensor x = explicit_ || attention_ ? Floats(input, type_) : at::Tensor();
  const at::Tensor kept = explicit_            ? Quantized(Dense(Kept(x)), filtered_grid_)
                          : KeepsInput(block_) ? input
                                               : at::Tensor();
  return (*fused_int8_)({.x = block_.expanded() > 0 ? Dense(input) : at::Tensor(),
                         .kept = Dense(kept),
                         .beside = Dense(Attend(x)),
                         .skipped = block_.skip() ? Dense(input) : at::Tensor()});
}

at::Tensor MobileModule::operator()(const at::Tensor& input) const {
  if (!IsFusedFor(input)) return ByLayers(IsPlain(block_) ? input : Floats(input, type_), input);
  if (fused_int8_) return InInt8(input);
  const at::Tensor x = Floats(input, type_);
  return (*fused_)({.x = block_.expanded() > 0 ? Dense(x) : at::Tensor(),
                    .kept = Dense(Kept(x)),
                    .beside = Dense(Attend(x)),
                    .skipped = block_.skip() ? Dense(x) : at::Tensor()});
}

}  // namespace saccade::models
