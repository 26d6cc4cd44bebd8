#include "models/networks/mobile/parameters.h"

#include "models/networks/mobile/layers.h"

namespace saccade::models {

std::vector<TensorSpec> MobileParameters(const MobilePlan& plan) {
  std::vector<TensorSpec> specs;
  for (const LayerSpec& layer : MobileLayers(plan)) {
    const std::string prefix = layer.name + ".";
    if (layer.kind == LayerSpec::Kind::kClassifier) {
      specs.push_back({prefix + "weight", {layer.outputs, layer.inputs}});
      specs.push_back({prefix + "bias", {layer.outputs}});
      continue;
    }
    if (layer.squeezed > 0) {
      specs.push_back({prefix + "squeeze.weight", {layer.squeezed, layer.inputs}});
      specs.push_back({prefix + "excite.weight", {layer.outputs, layer.squeezed}});
      continue;
    }
    if (layer.kind == LayerSpec::Kind::kAttention) {
      specs.push_back({prefix + "value.weight", {layer.outputs, layer.inputs}});
      if (layer.learned) specs.push_back({prefix + "w", {layer.inputs}});
    } else {
      specs.push_back(
          {prefix + "conv.weight",
           {layer.outputs - layer.attended, layer.inputs / layer.groups, layer.kernel, layer.kernel}});
      if (layer.attended > 0) {
        specs.push_back({prefix + "value.weight", {layer.attended, layer.inputs, 1, 1}});
        specs.push_back({prefix + "out.weight", {layer.attended, layer.attended, 1, 1}});
      }
      if (layer.radius) specs.push_back({prefix + "sigma", {}});
    }
    const bool coefficients = layer.kind == LayerSpec::Kind::kAttention && NormsCoefficients(layer.attention);
    for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
      specs.push_back({prefix + (coefficients ? "coefficients." : "bn.") + part, {NormedChannels(layer)}});
    }
  }
  return specs;
}

}  // namespace saccade::models
