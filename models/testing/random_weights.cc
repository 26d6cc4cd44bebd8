#include "models/testing/random_weights.h"

#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <fstream>
#include <stdexcept>

#include "models/weights/format/testing/files.h"

namespace saccade::models::testing {
namespace {

bool EndsWith(const std::string& name, const char* suffix) { return name.ends_with(suffix); }

at::Tensor RandomTensor(const TensorSpec& spec) {
  if (EndsWith(spec.name, ".sigma")) return at::full(spec.shape, 0.75, at::kFloat);
  if (EndsWith(spec.name, "attention.bn.running_var")) return at::full(spec.shape, 1e7, at::kFloat);
  // At full strength, attention makes an untrained network chaotic: rounding alone would change its results.
  if (EndsWith(spec.name, "attention.bn.weight")) return at::rand(spec.shape, at::kFloat).mul(0.1);
  if (EndsWith(spec.name, "running_var") || EndsWith(spec.name, "bn.weight") || EndsWith(spec.name, ".w")) {
    return at::rand(spec.shape, at::kFloat).add(0.5);
  }
  if (spec.shape.size() == 1) return at::randn(spec.shape, at::kFloat).mul(0.2);
  double fan_in = 1;
  for (size_t i = 1; i < spec.shape.size(); ++i) fan_in *= static_cast<double>(spec.shape[i]);
  return at::randn(spec.shape, at::kFloat).mul(std::sqrt(2 / fan_in));
}

}  // namespace

TensorMap RandomTensors(const std::vector<TensorSpec>& specs) {
  at::manual_seed(1);
  TensorMap tensors;
  for (const TensorSpec& spec : specs) tensors[spec.name] = RandomTensor(spec);
  return tensors;
}

void SaveSafetensors(const TensorMap& tensors, const std::string& path) {
  std::string header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const std::string begin = std::to_string(data.size());
    data.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    header += header.empty() ? "{" : ",";
    header += "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":" + ShapeText(tensor.sizes()) +
              ",\"data_offsets\":[" + begin + "," + std::to_string(data.size()) + "]}";
  }
  std::ofstream file(path, std::ios::binary);
  file << Safetensors((header.empty() ? "{" : header) + "}", data);
  if (!file.flush()) throw std::runtime_error(path + ": cannot write");
}

}  // namespace saccade::models::testing
