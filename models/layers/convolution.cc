#include "models/layers/convolution.h"

#include <ATen/core/List.h>
#include <ATen/ops/cudnn_convolution_add_relu.h>
#include <ATen/ops/cudnn_convolution_relu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "models/api/error.h"
#include "models/device/transfer.h"
#include "models/layers/convolution_ways.h"
#include "models/layers/onednn_operator.h"

namespace saccade::models {
namespace {

// LibTorch does not export oneDNN itself, but its fused convolutions can be called as operators.
using Scalars = c10::List<std::optional<at::Scalar>>;
using OptionalText = std::optional<std::string_view>;
using Pointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                             at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view,
                             Scalars, OptionalText);
using PointwiseBinary = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                   const std::optional<at::Tensor>&, at::IntArrayRef, at::IntArrayRef,
                                   at::IntArrayRef, int64_t, std::string_view, std::optional<at::Scalar>,
                                   OptionalText, Scalars, OptionalText);
using PointwiseInPlace = at::Tensor&(at::Tensor&, const at::Tensor&, const at::Tensor&,
                                     const std::optional<at::Tensor>&, at::IntArrayRef, at::IntArrayRef,
                                     at::IntArrayRef, int64_t, std::string_view, std::optional<at::Scalar>,
                                     OptionalText, Scalars, OptionalText);

void Apply(Activation activation, at::Tensor& x) {
  if (activation == Activation::kRelu) x.clamp_min_(0);
  if (activation == Activation::kRelu6) x.clamp_(0, 6);
}

// oneDNN fuses only ReLU with a sum.
OptionalText FusedWithSum(Activation activation) {
  return activation == Activation::kRelu ? OptionalText("relu") : std::nullopt;
}

bool OnePosition(const at::Tensor& x) {
  const auto sizes = x.sizes().slice(2);
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t side) { return side == 1; });
}

PackedWeight::Geometry GeometryOf(const at::Tensor& weight, const ConvolutionOptions& options) {
  const auto dims = static_cast<size_t>(weight.dim() - 2);
  PackedWeight::Geometry geometry{.padding = {},
                                  .stride = std::vector<int64_t>(dims, options.stride),
                                  .dilation = std::vector<int64_t>(dims, options.dilation),
                                  .groups = options.groups};
  if (dims == 3 && options.depth_stride) geometry.stride.front() = *options.depth_stride;
  for (const int64_t kernel : weight.sizes().slice(2)) {
    geometry.padding.push_back(options.padding.value_or(options.dilation * (kernel / 2)));
  }
  return geometry;
}

// Waits for the calling thread's stream.
double SecondsAfterStream(const at::Device& device) {
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the bytes that LibTorch ever allocated on the GPU for tensors and workspaces.
int64_t EverAllocated(const at::Device& gpu) {
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(gpu.type()));
  if (allocator == nullptr) return 0;
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return allocator->getDeviceStats(gpu.index()).allocated_bytes[kAll].allocated;
}

// Only convolutions of pictures are computed in 8 bits.
bool CanBeInt8(const at::Tensor& weight, const ConvolutionOptions& options) {
  return weight.dim() == 4 && options.target.packed();
}

}  // namespace

ConvolutionOptions Placed(const TensorMap& tensors, const std::string& name, ConvolutionOptions options) {
  options.target = tensors.target;
  // A linear layer's weight, which has no sides, is not quantized (models/weights/weights.cc).
  if (tensors.file_names && tensors.at(name + ".weight").dim() == 4) {
    if (const auto found = tensors.file_names->find(name + ".weight"); found != tensors.file_names->end())
      options.file_name = found->second;
  }
  const auto grids = tensors.find(name + kGridsSuffix);
  if (grids == tensors.end()) return options;
  options.weight_scale = tensors.at(name + kScaleSuffix);
  const auto* value = grids->second.const_data_ptr<float>();
  options.grids = Int8Grids{.input = {value[0], static_cast<int64_t>(value[1])},
                            .output = {value[2], static_cast<int64_t>(value[3])}};
  return options;
}

Convolution::Convolution(const at::Tensor& weight, const Affine& affine, const ConvolutionOptions& options)
    : activation_(options.activation),
      bias_(affine.shift.to(at::kFloat).contiguous()),
      geometry_(GeometryOf(weight, options)),
      type_(TypeOf(options.target)) {
  const Target& target = options.target;
  if (options.grids) {
    if (target.precision != Precision::kInt8 || !CanBeInt8(weight, options)) {
      throw LoadError(
          "the weight " + options.file_name +
          " is quantized to int8, which this layer cannot use here; set the option precision to int8, " +
          "or name the weights file from which this one was made");
    }
    int8_ = std::make_shared<const Int8Convolution>(Scaled({weight, options.weight_scale}, affine.scale),
                                                    bias_, geometry_,
                                                    Int8Convolution::Options{.activation = activation_,
                                                                             .grids = *options.grids,
                                                                             .stays_int8 = options.stays_int8,
                                                                             .floats = type_});
    return;
  }
  RefuseQuantized(weight);
  if (target.calibration != nullptr && !options.file_name.empty() && CanBeInt8(weight, options)) {
    calibration_ = target.calibration;
    const auto make = [weight, scale = affine.scale, bias = bias_, geometry = geometry_,
                       activation = activation_, type = type_](const Int8Grids& grids) {
      return std::make_shared<const Int8Convolution>(
          Scaled(QuantizedWeight(weight), scale), bias, geometry,
          Int8Convolution::Options{.activation = activation, .grids = grids, .floats = type});
    };
    calibrated_ = target.calibration->Add(options.file_name, weight, make);
  }
  const at::Tensor folded =
      ScaledWeight(weight, affine.scale).to(TypeOf(target)).contiguous(ChannelsLast(weight.dim() - 2));
  bias_ = bias_.to(TypeOf(target)).to(DeviceOf(target));
  if (target.packed()) {
    packed_ = std::make_shared<PackedWeight>(folded, geometry_);
    return;
  }
  weight_ = folded.to(DeviceOf(target));
  if (!target.on_gpu()) return;
  if (target.precision == Precision::kFloat32) {
    // Other precisions compute on tensor cores, whose algorithms take little beside the maps.
    workspace_ = std::make_shared<WorkspaceChoice>();
  } else if (activation_ == Activation::kRelu) {
    // The workspace of a fused function in float32 would have no bound.
    fused_ = std::make_shared<Fused>();
    fused_->precision = target.precision;
  }
}

// The convolution without its activation.
at::Tensor Convolution::Plain(const at::Tensor& x) const {
  const auto convolved = [&](ConvolutionWay way) { return Convolved(way, x, weight_, bias_, geometry_); };
  if (!workspace_) return convolved(ConvolutionWay::kWhole);
  const size_t way = workspace_->Get(x.sizes(), [&] {
    std::vector<LayerFunction> ways;
    for (const ConvolutionWay possible : kConvolutionWays)
      ways.emplace_back([&convolved, possible] { return convolved(possible); });
    return WayWithin(kMaxWorkspaceBytes, ways, [&] { return EverAllocated(x.device()); });
  });
  return convolved(kConvolutionWays.at(way));
}

at::Tensor Convolution::InSteps(const at::Tensor& x, const at::Tensor& other) const {
  at::Tensor y = Plain(x);
  if (other.defined()) y.add_(other);
  Apply(activation_, y);
  return y;
}

at::Tensor Convolution::InOneStep(const at::Tensor& x, const at::Tensor& other) const {
  if (!other.defined()) {
    return at::cudnn_convolution_relu(x, weight_, bias_, geometry_.stride, geometry_.padding,
                                      geometry_.dilation, geometry_.groups);
  }
  return at::cudnn_convolution_add_relu(x, weight_, other, /*alpha=*/1, bias_, geometry_.stride,
                                        geometry_.padding, geometry_.dilation, geometry_.groups);
}

bool Convolution::IsFused(const at::Tensor& x, const at::Tensor& other) const {
  if (!fused_) return false;
  FusedChoice& choice = other.defined() ? fused_->with_sum : fused_->alone;
  const auto run = [&] {
    const FusedTrial trial{
        .plain = [this](const at::Tensor& a, const at::Tensor& b) { return InSteps(a, b); },
        .fused = [this](const at::Tensor& a, const at::Tensor& b) { return InOneStep(a, b); },
        .now = [&] { return SecondsAfterStream(x.device()); },
        .tolerance = FusedTolerance(fused_->precision)};
    return trial.Run(x, other);
  };
  return choice.Get(run).fused;
}

at::Tensor Convolution::Unpacked(const at::Tensor& x, const at::Tensor& other) const {
  return IsFused(x, other) ? InOneStep(x, other) : InSteps(x, other);
}

const Int8Convolution* Convolution::Int8() const {
  if (int8_) return int8_.get();
  return calibrated_ ? calibrated_->trial() : nullptr;
}

at::Tensor Convolution::Observed(const at::Tensor& x, at::Tensor y) const {
  if (calibrated_) calibration_->Observe(*calibrated_, x, y);
  return y;
}

at::Tensor Convolution::operator()(const at::Tensor& x) const {
  if (const Int8Convolution* int8 = Int8()) return (*int8)(x);
  return Observed(x, Activated(Floats(x, type_)));
}

at::Tensor Convolution::WithSum(const at::Tensor& x, const at::Tensor& other) const {
  if (const Int8Convolution* int8 = Int8()) return int8->AddedTo(CopyOf(other), x);
  return Observed(x, Sum(Floats(x, type_), Floats(other, type_)));
}

at::Tensor Convolution::AddedTo(at::Tensor other, const at::Tensor& x) const {
  if (const Int8Convolution* int8 = Int8()) return int8->AddedTo(std::move(other), x);
  return Observed(x, SumInPlace(Floats(other, type_), Floats(x, type_)));
}

at::Tensor Convolution::Activated(const at::Tensor& x) const {
  if (!packed_) return Unpacked(x, {});
  static const auto pointwise = OneDnnOperator<Pointwise>("mkldnn::_convolution_pointwise", "");
  Scalars bounds;
  std::string_view activation = "none";
  if (activation_ == Activation::kRelu) activation = "relu";
  if (activation_ == Activation::kRelu6) {
    activation = "hardtanh";
    bounds.push_back(at::Scalar(0.0));
    bounds.push_back(at::Scalar(6.0));
  }
  return pointwise.call(x, packed_->For(x.sizes()), bias_, geometry_.padding, geometry_.stride,
                        geometry_.dilation, geometry_.groups, activation, bounds, "");
}

at::Tensor Convolution::Sum(const at::Tensor& x, const at::Tensor& other) const {
  if (!packed_) return Unpacked(x, other);
  // With one position the memory formats cannot be distinguished, and the fused operator throws.
  if (OnePosition(other) || activation_ == Activation::kRelu6) {
    Convolution plain = *this;
    plain.activation_ = Activation::kNone;
    at::Tensor sum = plain.Activated(x).add_(other);
    Apply(activation_, sum);
    return sum;
  }
  static const auto pointwise = OneDnnOperator<PointwiseBinary>("mkldnn::_convolution_pointwise", "binary");
  return pointwise.call(x, other, packed_->For(x.sizes()), bias_, geometry_.padding, geometry_.stride,
                        geometry_.dilation, geometry_.groups, "add", std::nullopt, FusedWithSum(activation_),
                        Scalars(), std::nullopt);
}

at::Tensor Convolution::SumInPlace(at::Tensor other, const at::Tensor& x) const {
  if (!packed_) {
    if (IsFused(x, other)) return InOneStep(x, other);
    other.add_(Plain(x));
    Apply(activation_, other);
    return other;
  }
  if (OnePosition(other) || activation_ == Activation::kRelu6) return other.copy_(Sum(x, other));
  static const auto pointwise = OneDnnOperator<PointwiseInPlace>("mkldnn::_convolution_pointwise_", "binary");
  return pointwise.call(other, x, packed_->For(x.sizes()), bias_, geometry_.padding, geometry_.stride,
                        geometry_.dilation, geometry_.groups, "add", std::nullopt, FusedWithSum(activation_),
                        Scalars(), std::nullopt);
}

Convolution BiasedConvolution(const TensorMap& tensors, const std::string& name,
                              const ConvolutionOptions& options) {
  const at::Tensor& weight = tensors.at(name + ".weight");
  const auto bias = tensors.find(name + ".bias");
  const at::Tensor ones = at::ones({weight.size(0)}, at::kDouble);
  return {
      weight,
      {ones, bias == tensors.end() ? at::zeros({weight.size(0)}, at::kDouble) : bias->second.to(at::kDouble)},
      Placed(tensors, name, options)};
}

Convolution LinearConvolution(const TensorMap& tensors, const std::string& name) {
  const at::Tensor weight = tensors.at(name + ".weight");
  const at::Tensor bias = tensors.at(name + ".bias").to(at::kDouble);
  return {weight.view({weight.size(0), weight.size(1), 1, 1}),
          {at::ones({weight.size(0)}, at::kDouble), bias},
          Placed(tensors, name, {})};
}

Convolution NormedConvolution(const TensorMap& tensors, const std::string& convolution,
                              const std::string& norm, const ConvolutionOptions& options, double epsilon) {
  return {tensors.at(convolution + ".weight"), FoldBatchNorm(tensors, norm + ".", epsilon),
          Placed(tensors, convolution, options)};
}

}  // namespace saccade::models
