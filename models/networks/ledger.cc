#include "models/networks/ledger.h"

#include <functional>
#include <numeric>

namespace saccade::models {
namespace {

int64_t Product(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{1}, std::multiplies<>());
}

std::string Operation(const ConvolutionShape& shape, const std::vector<int64_t>& output) {
  const bool depthwise = shape.groups > 1 && shape.groups == shape.inputs && shape.groups == shape.outputs;
  std::string text = ExtentText(shape.kernel);
  if (shape.transposed) text += " transposed";
  if (depthwise) {
    text += " depthwise, " + std::to_string(shape.outputs) + " channels";
  } else {
    text += " convolution, " + std::to_string(shape.inputs) + " to " + std::to_string(shape.outputs);
  }
  if (shape.groups > 1 && !depthwise) text += ", " + std::to_string(shape.groups) + " groups";
  if (shape.depth_stride) {
    text += ", stride " + ExtentText({*shape.depth_stride, shape.stride, shape.stride});
  } else if (shape.stride > 1) {
    text += ", stride " + std::to_string(shape.stride);
  }
  if (shape.dilation > 1) text += ", dilation " + std::to_string(shape.dilation);
  return output.empty() ? text : text + ", " + ExtentText(output);
}

std::vector<int64_t> WeightShape(const ConvolutionShape& shape) {
  std::vector<int64_t> weight = shape.transposed
                                    ? std::vector<int64_t>{shape.inputs, shape.outputs / shape.groups}
                                    : std::vector<int64_t>{shape.outputs, shape.inputs / shape.groups};
  weight.insert(weight.end(), shape.kernel.begin(), shape.kernel.end());
  return weight;
}

}  // namespace

std::string ExtentText(const std::vector<int64_t>& extent) {
  std::string text;
  for (const int64_t side : extent) {
    if (!text.empty()) text += "x";
    text += std::to_string(side);
  }
  return text;
}

void Ledger::Convolution(const std::string& name, const ConvolutionShape& shape,
                         const std::vector<int64_t>& output) {
  const std::vector<int64_t> weight = WeightShape(shape);
  tensors_.push_back({name + ".weight", weight});
  if (shape.bias) tensors_.push_back({name + ".bias", {shape.outputs}});
  const int64_t weights = Product(weight);
  // A transposed convolution applies its kernel to each input position, so its cost depends on the input
  // size.
  int64_t positions = output.empty() ? 0 : Product(output);
  if (shape.transposed) {
    for (size_t i = 0; i < output.size(); ++i) positions /= shape.stride;
  }
  counts_.layers.push_back({.name = name,
                            .operation = Operation(shape, output),
                            .parameters = weights,
                            .other_parameters = shape.bias ? shape.outputs : 0,
                            .madds = positions * weights});
}

void Ledger::BatchNorm(const std::string& name, int64_t channels) {
  for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
    tensors_.push_back({name + "." + part, {channels}});
  }
  counts_.layers.push_back({.name = name,
                            .operation = "batch norm, " + std::to_string(channels) + " channels",
                            .other_parameters = 2 * channels});
}

void Ledger::Linear(const std::string& name, int64_t inputs, int64_t outputs, int64_t rows) {
  tensors_.push_back({name + ".weight", {outputs, inputs}});
  tensors_.push_back({name + ".bias", {outputs}});
  counts_.layers.push_back({.name = name,
                            .operation = "linear, " + std::to_string(inputs) + " to " +
                                         std::to_string(outputs) + ", " + std::to_string(rows) + " times",
                            .parameters = inputs * outputs,
                            .other_parameters = outputs,
                            .madds = rows * inputs * outputs});
}

void Ledger::EfficientAttention(const std::string& name, int64_t channels, int64_t key_channels,
                                int64_t value_channels, bool reprojected,
                                const std::vector<int64_t>& output) {
  LayerCount count = Projections(name, channels, key_channels, value_channels, reprojected, output);
  count.operation = "efficient attention, " + count.operation;
  count.madds += Product(output) * 2 * key_channels * value_channels;
  count.attention_bytes += 4 * key_channels * value_channels;
  counts_.layers.push_back(count);
}

void Ledger::NonLocal(const std::string& name, int64_t channels, int64_t key_channels, int64_t value_channels,
                      const std::vector<int64_t>& output) {
  LayerCount count = Projections(name, channels, key_channels, value_channels, /*reprojected=*/true, output);
  const int64_t positions = Product(output);
  count.operation = "non-local block, " + count.operation;
  count.madds += positions * positions * (key_channels + value_channels);
  count.attention_bytes += 4 * positions * positions;
  counts_.layers.push_back(count);
}

LayerCount Ledger::Projections(const std::string& name, int64_t channels, int64_t key_channels,
                               int64_t value_channels, bool reprojected, const std::vector<int64_t>& output) {
  int64_t weights = 0;
  int64_t biases = 0;
  const auto projection = [&](const char* part, int64_t inputs, int64_t outputs) {
    std::vector<int64_t> shape = {outputs, inputs};
    shape.insert(shape.end(), output.size(), 1);
    tensors_.push_back({name + "." + part + ".weight", shape, name});
    tensors_.push_back({name + "." + part + ".bias", {outputs}, name});
    weights += inputs * outputs;
    biases += outputs;
  };
  projection("query", channels, key_channels);
  projection("key", channels, key_channels);
  projection("value", channels, value_channels);
  if (reprojected) projection("out", value_channels, channels);
  const int64_t positions = Product(output);
  // Without reprojection the values have the map's channels, and one map less is held.
  const int64_t maps = 2 * (key_channels + value_channels) + (reprojected ? 2 : 1) * channels;
  return {.name = name,
          .operation = std::to_string(channels) + " channels, " + std::to_string(key_channels) + " keys, " +
                       std::to_string(value_channels) + " values, " + ExtentText(output),
          .attention = true,
          .parameters = weights,
          .other_parameters = biases,
          .madds = positions * weights,
          .attention_bytes = 4 * positions * maps};
}

void Ledger::Add(const LayerCount& count, const std::vector<TensorSpec>& tensors) {
  tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
  counts_.layers.push_back(count);
}

}  // namespace saccade::models
