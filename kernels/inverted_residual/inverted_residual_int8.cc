#include "kernels/inverted_residual/inverted_residual_int8.h"

#include <ATen/ops/_empty_affine_quantized.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/check.h"
#include "kernels/common/cpu_run.h"
#include "kernels/inverted_residual/inverted_residual_int8_cpu.h"

namespace saccade::kernels {
namespace {

constexpr auto kInt8Name = "inverted_residual in 8 bits";

// Tensors are aligned to cache lines.
at::Tensor AlignedBytes(const std::vector<int8_t>& values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kChar);
  std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size());
  return tensor;
}

// The values of the channels in `order`, and 0 where that is -1.
template <typename T>
at::Tensor InOrder(const at::Tensor& values, const std::vector<int64_t>& order) {
  const auto type = c10::CppTypeToScalarType<T>::value;
  const at::Tensor from = values.to(type).contiguous();
  at::Tensor to = at::empty({static_cast<int64_t>(order.size())}, type);
  auto* out = to.mutable_data_ptr<T>();
  for (const int64_t channel : order) *out++ = channel < 0 ? T{0} : from.const_data_ptr<T>()[channel];
  return to;
}

// The sum of each output's weights.
at::Tensor Sums(const at::Tensor& weight) { return weight.to(at::kDouble).flatten(1).sum(1); }

// Checks the weight of a 1x1 layer, which may have no sides.
void CheckProduct(const char* argument, const at::Tensor& weight) {
  if (weight.dim() == 2) return;
  CheckShape(kInt8Name, argument, weight, {weight.sym_size(0), weight.sym_size(1), 1, 1});
}

// Checks what all layers have in common.
void CheckLayer(const char* name, const Int8InvertedResidual::Layer& layer) {
  TORCH_CHECK(layer.weight.defined() && layer.scale.defined() && layer.bias.defined(), kInt8Name, ": layer '",
              name, "' should have a weight, scales and biases");
  const std::string weight = std::string(name) + ".weight";
  TORCH_CHECK(layer.weight.dim() >= 2, kInt8Name, ": argument '", weight,
              "' should have outputs and inputs, got the shape ", layer.weight.sizes());
  CheckDtype(kInt8Name, weight.c_str(), layer.weight, {at::kChar});
  const c10::SymInt outputs = layer.weight.sym_size(0);
  CheckShape(kInt8Name, (std::string(name) + ".scale").c_str(), layer.scale, {outputs});
  CheckShape(kInt8Name, (std::string(name) + ".bias").c_str(), layer.bias, {outputs});
}

void CheckWeights(const Int8InvertedResidual::Weights& weights) {
  if (weights.expand.weight.defined()) {
    CheckLayer("expand", weights.expand);
    CheckProduct("expand.weight", weights.expand.weight);
  }
  CheckLayer("filter", weights.filter);
  CheckShape(kInt8Name, "filter.weight", weights.filter.weight, {weights.filter.weight.sym_size(0), 1, 3, 3});
  CheckLayer("project", weights.project);
  CheckProduct("project.weight", weights.project.weight);
}

void CheckMap(const char* argument, const at::Tensor& map, std::initializer_list<at::ScalarType> types,
              at::IntArrayRef expected) {
  if (!map.defined()) {
    TORCH_CHECK(expected[1] == 0, kInt8Name, ": argument '", argument, "' is missing, expected ", expected);
    return;
  }
  CheckDtype(kInt8Name, argument, map, types);
  CheckShape(kInt8Name, argument, map, c10::fromIntArrayRefSlow(expected));
  TORCH_CHECK(map.is_contiguous(at::MemoryFormat::ChannelsLast), kInt8Name, ": argument '", argument,
              "' should be dense in channels-last");
}

const uint8_t* BytesOf(const at::Tensor& map) {
  return map.defined() ? static_cast<const uint8_t*>(map.const_data_ptr()) : nullptr;
}

ByteGrid GridOf(const at::Tensor& map) {
  if (!map.defined()) return {};
  return {.scale = static_cast<float>(map.q_scale()), .zero = static_cast<int32_t>(map.q_zero_point())};
}

}  // namespace

struct Int8InvertedResidual::Packed {
  // A layer as tensors that hold what is packed.
  struct Layer {
    at::Tensor data, scale, bias, sums;

    PackedInt8Product Product(const Int8InvertedResidual::Layer& layer) {
      const at::Tensor rows = layer.weight.flatten(1).contiguous();
      const std::vector<int64_t> order = Int8ProductOrder(rows.size(0));
      data = AlignedBytes(PackInt8Product(rows.const_data_ptr<int8_t>(), rows.size(0), rows.size(1)));
      scale = InOrder<float>(layer.scale, order);
      bias = InOrder<float>(layer.bias, order);
      sums = InOrder<double>(Sums(rows).mul(layer.scale), order);
      return {.data = data.const_data_ptr<int8_t>(),
              .scale = scale.const_data_ptr<float>(),
              .bias = bias.const_data_ptr<float>(),
              .sums = sums.const_data_ptr<double>(),
              .inputs = RoundUp(rows.size(1), 4),
              .outputs = rows.size(0)};
    }

    PackedInt8Filter Filter(const Int8InvertedResidual::Layer& layer) {
      const at::Tensor rows = layer.weight.flatten(1).contiguous();
      const std::vector<int64_t> order = Int8FilterOrder(rows.size(0));
      data = AlignedBytes(PackInt8Filter(rows.const_data_ptr<int8_t>(), rows.size(0)));
      scale = InOrder<float>(layer.scale, order);
      bias = InOrder<float>(layer.bias, order);
      sums = InOrder<int32_t>(Sums(rows), order);
      return {.data = data.const_data_ptr<int8_t>(),
              .scale = scale.const_data_ptr<float>(),
              .bias = bias.const_data_ptr<float>(),
              .sums = sums.const_data_ptr<int32_t>()};
    }
  };

  Layer expand, filter, project;
  Int8InvertedResidualWeights weights;
};

bool Int8InvertedResidual::Supports(int64_t inputs) { return RunsInt8InvertedResidual() && inputs % 4 == 0; }

Int8InvertedResidual::Int8InvertedResidual(const Weights& weights, int64_t stride) {
  CheckWeights(weights);
  auto packed = std::make_unique<Packed>();
  Int8InvertedResidualWeights& w = packed->weights;
  const bool expands = weights.expand.weight.defined();
  const int64_t filtered = weights.filter.weight.size(0);
  w.layers.stride = stride;
  w.layers.inputs = expands ? weights.expand.weight.size(1) : 0;
  w.layers.expanded = expands ? weights.expand.weight.size(0) : 0;
  w.layers.kept = filtered - w.layers.expanded;
  w.layers.beside = weights.project.weight.size(1) - filtered;
  w.layers.outputs = weights.project.weight.size(0);
  TORCH_CHECK(Supports(w.layers.inputs) && (stride == 1 || stride == 2), kInt8Name, ": no code for ",
              w.layers.inputs, " inputs and stride ", stride);
  TORCH_CHECK(w.layers.kept >= 0 && w.layers.beside >= 0, kInt8Name, ": ", w.layers.expanded,
              " expanded channels, but ", filtered, " filtered and ", weights.project.weight.size(1),
              " projected ones");
  w.filtered = weights.filtered;
  w.projected = weights.projected;
  w.out = weights.out;
  if (expands) w.expand = packed->expand.Product(weights.expand);
  w.filter = packed->filter.Filter(weights.filter);
  w.project = packed->project.Product(weights.project);
  packed_ = std::move(packed);
}

Int8InvertedResidual::~Int8InvertedResidual() = default;
Int8InvertedResidual::Int8InvertedResidual(Int8InvertedResidual&& other) noexcept = default;
Int8InvertedResidual& Int8InvertedResidual::operator=(Int8InvertedResidual&& other) noexcept = default;

at::Tensor Int8InvertedResidual::operator()(const Maps& maps) const {
  const Int8InvertedResidualWeights& w = packed_->weights;
  const at::Tensor& input = w.layers.expanded > 0 ? maps.x : maps.kept;
  TORCH_CHECK(input.defined() && input.dim() == 4, kInt8Name, ": expected a map of pictures");
  TORCH_CHECK(input.size(2) > 0 && input.size(3) > 0, kInt8Name,
              ": expected a map with sides of at least 1, got the shape ", input.sizes());
  Int8InvertedResidualProblem problem{
      .weights = w, .batch = input.size(0), .height = input.size(2), .width = input.size(3)};
  const int64_t height = problem.out_height();
  const int64_t width = problem.out_width();
  CheckMap("x", maps.x, {at::kQUInt8}, {problem.batch, w.layers.inputs, problem.height, problem.width});
  CheckMap("kept", maps.kept, {at::kQUInt8}, {problem.batch, w.layers.kept, problem.height, problem.width});
  CheckMap("beside", maps.beside, {at::kFloat, at::kBFloat16},
           {problem.batch, w.layers.beside, height, width});
  if (maps.skipped.defined())
    CheckMap("skipped", maps.skipped, {at::kQUInt8}, {problem.batch, w.layers.outputs, height, width});
  at::Tensor out = at::_empty_affine_quantized({problem.batch, w.layers.outputs, height, width},
                                               at::TensorOptions(at::kQUInt8), w.out.scale, w.out.zero,
                                               at::MemoryFormat::ChannelsLast);
  if (out.numel() == 0) return out;
  problem.x = BytesOf(maps.x);
  problem.x_grid = GridOf(maps.x);
  problem.kept = BytesOf(maps.kept);
  problem.kept_grid = GridOf(maps.kept);
  if (maps.beside.defined()) {
    const void* beside = maps.beside.const_data_ptr();
    if (maps.beside.scalar_type() == at::kFloat) {
      problem.beside = static_cast<const float*>(beside);
    } else {
      problem.beside_bfloat16 = static_cast<const BFloat16*>(beside);
    }
  }
  problem.skipped = BytesOf(maps.skipped);
  problem.skipped_grid = GridOf(maps.skipped);
  problem.out = static_cast<uint8_t*>(out.mutable_data_ptr());
  RunCpuCode<Int8InvertedResidualCpuWorkspaceBytes, RunInt8InvertedResidualCpu>(problem);
  return out;
}

}  // namespace saccade::kernels
