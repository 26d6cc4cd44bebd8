#include "models/error.h"
#include "models/networks/deeplab/describe.h"
#include "models/networks/identity/describe.h"
#include "models/networks/mask_rcnn/describe.h"
#include "models/networks/mobile/describe.h"
#include "models/networks/psmnet/describe.h"
#include "models/networks/rc3d/describe.h"
#include "models/networks/residual/describe.h"
#include "models/networks/unet3d/describe.h"
#include "models/registry.h"
#include "models/target.h"
#include "models/weights/format/tensor_entry.h"

namespace saccade::models {
namespace {

struct Architecture {
  const char* name;
  Description (*describe)(const std::string& architecture, const Options&, const std::vector<std::string>&);
  Counts (*count)(const std::string& architecture, const Options&);
};

// Sorted by name. Each row needs a matching row in registry.cc.
constexpr Architecture kArchitectures[] = {
    {"attnnet", DescribeMobile, CountMobile},
    {"attnnet_1n", DescribeMobile, CountMobile},
    {"attnnet_pool", DescribeMobile, CountMobile},
    {"deeplabv2_kao_kv", DescribeDeepLab, CountDeepLab},
    {"deeplabv2_kao_qkv", DescribeDeepLab, CountDeepLab},
    {"ea_mask_rcnn_r101", DescribeMaskRcnn, CountMaskRcnn},
    {"ea_mask_rcnn_r50", DescribeMaskRcnn, CountMaskRcnn},
    {"ea_mask_rcnn_x101", DescribeMaskRcnn, CountMaskRcnn},
    {"ea_psmnet", DescribePsmnet, CountPsmnet},
    {"ea_rc3d", DescribeRc3d, CountRc3d},
    {"expatt_mobilenetv2", DescribeMobile, CountMobile},
    {"expatt_resnet101", DescribeResidual, CountResidual},
    {"expatt_resnet152", DescribeResidual, CountResidual},
    {"expatt_resnet34", DescribeResidual, CountResidual},
    {"expatt_resnet50", DescribeResidual, CountResidual},
    {"gsa_resnet101", DescribeResidual, CountResidual},
    {"gsa_resnet38", DescribeResidual, CountResidual},
    {"gsa_resnet50", DescribeResidual, CountResidual},
    {"identity", DescribeIdentity, CountIdentity},
    {"kanet_kv", DescribeMobile, CountMobile},
    {"kanet_qkv", DescribeMobile, CountMobile},
    {"mobilenetv2", DescribeMobile, CountMobile},
    {"mobilenetv2_kao", DescribeMobile, CountMobile},
    {"mobilenetv2_sao", DescribeMobile, CountMobile},
    {"sanet", DescribeMobile, CountMobile},
    {"unet3d_sao_denoise", DescribeUnet, CountUnet},
    {"unet3d_sao_project", DescribeUnet, CountUnet},
};

const Architecture& Find(const std::string& name) {
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name) return architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  throw LoadError("unknown architecture " + Quote(name) + "; the architectures are: " + known);
}

void CheckLabels(const Description& description) {
  const auto labels = static_cast<int64_t>(description.labels.size());
  if (labels == 0 || labels == description.classes) return;
  throw LoadError(description.architecture + ": there are " + std::to_string(labels) + " labels for " +
                  std::to_string(description.classes) +
                  " classes; give one per class, or set the option classes");
}

}  // namespace

std::vector<std::string> Architectures() {
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) names.emplace_back(architecture.name);
  return names;
}

Description Describe(const std::string& architecture, const Options& options,
                     const std::vector<std::string>& labels) {
  PrecisionOf(options);
  Description description = Find(architecture).describe(architecture, WithoutPrecision(options), labels);
  CheckLabels(description);
  return description;
}

Counts Count(const std::string& architecture, const Options& options) {
  return Find(architecture).count(architecture, WithoutPrecision(options));
}

}  // namespace saccade::models
