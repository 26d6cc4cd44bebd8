// The mobile networks, for serving: SANet and AttnNet of "Siamese Attention Networks", KANet of "Kronecker
// Attention Networks", MobileNetV2, and MobileNetV2 with their attention or with explicitly modelled
// attention.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/api/target.h"

namespace saccade::models {

// As Load() in models/api/registry.h, for sanet, attnnet, attnnet_pool, attnnet_1n, kanet_kv, kanet_qkv,
// mobilenetv2, mobilenetv2_sao, mobilenetv2_kao and expatt_mobilenetv2. MobileNetV2's weights may have
// torchvision's names.
std::unique_ptr<Model> LoadMobile(const std::string& architecture, const Options& options,
                                  const std::string& weights_path, const std::vector<std::string>& labels,
                                  const Target& target = {});

}  // namespace saccade::models
