#include "kernels/inverted_residual/inverted_residual.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstring>
#include <utility>
#include <vector>

#include "kernels/common/check.h"
#include "kernels/common/cpu_run.h"
#include "kernels/inverted_residual/inverted_residual_cpu.h"

namespace saccade::kernels {
namespace {

constexpr auto kName = "inverted_residual";

int64_t Channels(const at::Tensor& map) { return map.defined() ? map.size(0) : 0; }

InvertedResidualLayers LayersOf(const InvertedResidual::Weights& weights, int64_t stride) {
  const int64_t expanded = Channels(weights.expand);
  const int64_t filtered = weights.filter.size(0);
  return {.inputs = expanded > 0 ? weights.expand.size(1) : 0,
          .expanded = expanded,
          .kept = filtered - expanded,
          .beside = weights.project.size(1) - filtered,
          .outputs = weights.project.size(0),
          .stride = stride};
}

// [outputs, inputs, ...] with the columns [from, from + count) of `weight` at `to`.
void Place(const at::Tensor& weight, int64_t from, int64_t count, int64_t to, at::Tensor& placed) {
  if (count > 0) placed.narrow(1, to, count).copy_(weight.narrow(1, from, count));
}

// The weight by columns of a projected row, zero where that is padded.
at::Tensor InProjectedOrder(const at::Tensor& weight, const InvertedResidualLayers& layers) {
  const at::Tensor matrix = weight.reshape({layers.outputs, -1});
  at::Tensor placed = at::zeros({layers.outputs, layers.projected_row()});
  Place(matrix, 0, layers.expanded, 0, placed);
  Place(matrix, layers.expanded, layers.kept, InvertedResidualLayers::Padded(layers.expanded), placed);
  Place(matrix, layers.expanded + layers.kept, layers.beside, layers.filtered_row(), placed);
  return placed;
}

// Rows of the filter's weights or bias, [n, filtered], by columns of a filtered row.
at::Tensor InFilteredOrder(const at::Tensor& rows, const InvertedResidualLayers& layers) {
  at::Tensor placed = at::zeros({rows.size(0), layers.filtered_row()});
  Place(rows, 0, layers.expanded, 0, placed);
  Place(rows, layers.expanded, layers.kept, InvertedResidualLayers::Padded(layers.expanded), placed);
  return placed;
}

at::Tensor PaddedBias(const at::Tensor& bias) {
  at::Tensor padded = at::zeros({InvertedResidualLayers::Padded(bias.size(0))});
  padded.narrow(0, 0, bias.size(0)).copy_(bias);
  return padded;
}

// Packs [outputs, inputs]; tensors are aligned to cache lines.
at::Tensor PackedMatrix(const at::Tensor& matrix, at::ScalarType type) {
  const at::Tensor rows = matrix.to(at::kFloat).contiguous();
  const auto pack = [&]<typename T>(T /*zero*/) {
    const std::vector<T> packed = PackProduct<T>(rows.const_data_ptr<float>(), rows.size(0), rows.size(1));
    at::Tensor tensor = at::empty({static_cast<int64_t>(packed.size())}, type);
    std::memcpy(tensor.mutable_data_ptr(), packed.data(), packed.size() * sizeof(T));
    return tensor;
  };
  return type == at::kFloat ? pack(0.0F) : pack(BFloat16{0.0F});
}

PackedProduct ProductOf(const at::Tensor& packed, const at::Tensor& bias, int64_t inputs, int64_t outputs) {
  return {.data = packed.const_data_ptr(),
          .bias = bias.const_data_ptr<float>(),
          .inputs = inputs,
          .outputs = outputs};
}

void CheckMap(const char* argument, const at::Tensor& map, at::ScalarType type, at::IntArrayRef expected) {
  if (!map.defined()) {
    TORCH_CHECK(expected[1] == 0, kName, ": argument '", argument, "' is missing, expected ", expected);
    return;
  }
  CheckDtype(kName, argument, map, {type});
  CheckShape(kName, argument, map, c10::fromIntArrayRefSlow(expected));
  TORCH_CHECK(map.is_contiguous(at::MemoryFormat::ChannelsLast), kName, ": argument '", argument,
              "' should be dense in channels-last");
}

}  // namespace

struct InvertedResidual::Packed {
  at::Tensor expand, expand_bias, filter, filter_bias, project, project_bias;
  InvertedResidualWeights weights;
};

bool InvertedResidual::Supports(at::ScalarType type, int64_t inputs) {
  return type == at::kFloat || (type == at::kBFloat16 && MultipliesBFloat16() && inputs % 2 == 0);
}

InvertedResidual::InvertedResidual(const Weights& weights, int64_t stride, at::ScalarType type)
    : type_(type) {
  const InvertedResidualLayers layers = LayersOf(weights, stride);
  TORCH_CHECK(Supports(type, layers.inputs) && (stride == 1 || stride == 2), kName, ": no code for type ",
              type, " with ", layers.inputs, " inputs and stride ", stride);
  TORCH_CHECK(layers.kept >= 0 && layers.beside >= 0, kName, ": ", layers.expanded,
              " expanded channels, but ", weights.filter.size(0), " filtered and ", weights.project.size(1),
              " projected ones");
  auto packed = std::make_unique<Packed>();
  packed->weights.layers = layers;
  if (layers.expanded > 0) {
    packed->expand = PackedMatrix(weights.expand.reshape({layers.expanded, layers.inputs}), type);
    packed->expand_bias = PaddedBias(weights.expand_bias);
    packed->weights.expand = ProductOf(packed->expand, packed->expand_bias, layers.inputs, layers.expanded);
  }
  packed->filter = InFilteredOrder(weights.filter.reshape({-1, 9}).t(), layers).contiguous();
  packed->filter_bias = InFilteredOrder(weights.filter_bias.unsqueeze(0), layers);
  packed->weights.filter = packed->filter.const_data_ptr<float>();
  packed->weights.filter_bias = packed->filter_bias.const_data_ptr<float>();
  packed->project = PackedMatrix(InProjectedOrder(weights.project, layers), type);
  packed->project_bias = PaddedBias(weights.project_bias);
  packed->weights.project =
      ProductOf(packed->project, packed->project_bias, layers.projected_row(), layers.outputs);
  packed_ = std::move(packed);
}

InvertedResidual::~InvertedResidual() = default;
InvertedResidual::InvertedResidual(InvertedResidual&& other) noexcept = default;
InvertedResidual& InvertedResidual::operator=(InvertedResidual&& other) noexcept = default;

at::Tensor InvertedResidual::operator()(const Maps& maps) const {
  const InvertedResidualLayers& layers = packed_->weights.layers;
  const at::Tensor& input = layers.expanded > 0 ? maps.x : maps.kept;
  TORCH_CHECK(input.defined() && input.dim() == 4, kName, ": expected a map of pictures");
  TORCH_CHECK(input.size(2) > 0 && input.size(3) > 0, kName,
              ": expected a map with sides of at least 1, got the shape ", input.sizes());
  InvertedResidualProblem problem{
      .weights = packed_->weights, .batch = input.size(0), .height = input.size(2), .width = input.size(3)};
  const int64_t height = problem.out_height();
  const int64_t width = problem.out_width();
  CheckMap("x", maps.x, type_, {problem.batch, layers.inputs, problem.height, problem.width});
  CheckMap("kept", maps.kept, type_, {problem.batch, layers.kept, problem.height, problem.width});
  CheckMap("beside", maps.beside, type_, {problem.batch, layers.beside, height, width});
  if (maps.skipped.defined())
    CheckMap("skipped", maps.skipped, type_, {problem.batch, layers.outputs, height, width});
  at::Tensor out = at::empty({problem.batch, layers.outputs, height, width},
                             at::TensorOptions(type_).memory_format(at::MemoryFormat::ChannelsLast));
  if (out.numel() == 0) return out;
  const auto data = [](const at::Tensor& map) { return map.defined() ? map.const_data_ptr() : nullptr; };
  problem.x = data(maps.x);
  problem.kept = data(maps.kept);
  problem.beside = data(maps.beside);
  problem.skipped = data(maps.skipped);
  problem.out = out.mutable_data_ptr();
  if (type_ == at::kFloat) {
    RunCpuCode<InvertedResidualCpuWorkspaceBytes<float>, RunInvertedResidualCpu<float>>(problem);
  } else {
    RunCpuCode<InvertedResidualCpuWorkspaceBytes<BFloat16>, RunInvertedResidualCpu<BFloat16>>(problem);
  }
  return out;
}

}  // namespace saccade::kernels
