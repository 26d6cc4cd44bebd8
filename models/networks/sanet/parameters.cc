#include "models/networks/sanet/parameters.h"

#include "models/networks/sanet/layers.h"

namespace saccade::models {

std::vector<TensorSpec> SanetParameters(const SanetPlan& plan) {
  using Kind = LayerSpec::Kind;
  std::vector<TensorSpec> specs;
  for (const LayerSpec& layer : SanetLayers(plan)) {
    const std::string prefix = layer.name + ".";
    if (layer.kind == Kind::kClassifier) {
      specs.push_back({prefix + "weight", {layer.outputs, layer.inputs}});
      specs.push_back({prefix + "bias", {layer.outputs}});
      continue;
    }
    if (layer.kind == Kind::kAttention) {
      specs.push_back({prefix + "value.weight", {layer.outputs, layer.inputs}});
      if (layer.learned) specs.push_back({prefix + "w", {layer.inputs}});
    } else {
      specs.push_back(
          {prefix + "conv.weight", {layer.outputs, layer.inputs / layer.groups, layer.kernel, layer.kernel}});
    }
    for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
      specs.push_back({prefix + "bn." + part, {layer.outputs}});
    }
  }
  return specs;
}

}  // namespace saccade::models
