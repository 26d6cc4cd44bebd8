// The mobile networks, served: SANet and AttnNet of "Siamese Attention Networks", KANet of "Kronecker
// Attention Networks", MobileNetV2, and MobileNetV2 with either attention.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/target.h"

namespace saccade::models {

// As models/registry.h says of Load, for sanet, attnnet, attnnet_pool, attnnet_1n, kanet_kv, kanet_qkv,
// mobilenetv2, mobilenetv2_sao and mobilenetv2_kao. MobileNetV2's weights may be torchvision's.
std::unique_ptr<Model> LoadMobile(const std::string& architecture, const Options& options,
                                  const std::string& weights_path, const std::vector<std::string>& labels,
                                  const Target& target = {});

}  // namespace saccade::models
