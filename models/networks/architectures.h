// The table of all architectures. Descriptions, loading, docs/models.md and the PyTorch twins
// (models/reference/registry.py) have the same names: models/reference/architectures_test.py compares them.
// Does not include LibTorch.
#pragma once

#include <string>

namespace saccade::models {

// The code that describes, counts and loads an architecture: a folder of models/networks.
enum class Network { kDeepLab, kIdentity, kMaskRcnn, kMobile, kPsmnet, kRc3d, kResidual, kUnet3d };

struct Architecture {
  const char* name;
  Network network;
};

// Sorted by name.
inline constexpr Architecture kArchitectures[] = {
    {"attnnet", Network::kMobile},
    {"attnnet_1n", Network::kMobile},
    {"attnnet_pool", Network::kMobile},
    {"deeplabv2_kao_kv", Network::kDeepLab},
    {"deeplabv2_kao_qkv", Network::kDeepLab},
    {"ea_mask_rcnn_r101", Network::kMaskRcnn},
    {"ea_mask_rcnn_r50", Network::kMaskRcnn},
    {"ea_mask_rcnn_x101", Network::kMaskRcnn},
    {"ea_psmnet", Network::kPsmnet},
    {"ea_rc3d", Network::kRc3d},
    {"expatt_mobilenetv2", Network::kMobile},
    {"expatt_resnet101", Network::kResidual},
    {"expatt_resnet152", Network::kResidual},
    {"expatt_resnet34", Network::kResidual},
    {"expatt_resnet50", Network::kResidual},
    {"gsa_resnet101", Network::kResidual},
    {"gsa_resnet38", Network::kResidual},
    {"gsa_resnet50", Network::kResidual},
    {"identity", Network::kIdentity},
    {"kanet_kv", Network::kMobile},
    {"kanet_qkv", Network::kMobile},
    {"maskrcnn_resnet50_fpn", Network::kMaskRcnn},
    {"mobilenet_v2", Network::kMobile},
    {"mobilenetv2", Network::kMobile},
    {"mobilenetv2_kao", Network::kMobile},
    {"mobilenetv2_sao", Network::kMobile},
    {"resnet101", Network::kResidual},
    {"resnet152", Network::kResidual},
    {"resnet18", Network::kResidual},
    {"resnet34", Network::kResidual},
    {"resnet50", Network::kResidual},
    {"sanet", Network::kMobile},
    {"unet3d_sao_denoise", Network::kUnet3d},
    {"unet3d_sao_project", Network::kUnet3d},
};

// Throws a LoadError that lists all architectures if there is none of the name.
Network NetworkOf(const std::string& architecture);

}  // namespace saccade::models
