#include "models/registry.h"

#include "models/error.h"
#include "models/model.h"
#include "models/networks/deeplab/deeplab.h"
#include "models/networks/identity/identity.h"
#include "models/networks/mask_rcnn/mask_rcnn.h"
#include "models/networks/mobile/mobile.h"
#include "models/networks/psmnet/psmnet.h"
#include "models/networks/rc3d/rc3d.h"
#include "models/networks/residual/residual.h"
#include "models/networks/unet3d/unet3d.h"
#include "models/on_gpu.h"
#include "models/target.h"

namespace saccade::models {
namespace {

struct Loader {
  const char* name;
  std::unique_ptr<Model> (*load)(const std::string& architecture, const Options&, const std::string& weights,
                                 const std::vector<std::string>& labels, const Target& target);
};

// Separate from architectures.cc, so that programs that only count parameters do not link LibTorch.
constexpr Loader kLoaders[] = {
    {"attnnet", LoadMobile},
    {"attnnet_1n", LoadMobile},
    {"attnnet_pool", LoadMobile},
    {"deeplabv2_kao_kv", LoadDeepLab},
    {"deeplabv2_kao_qkv", LoadDeepLab},
    {"ea_mask_rcnn_r101", LoadMaskRcnn},
    {"ea_mask_rcnn_r50", LoadMaskRcnn},
    {"ea_mask_rcnn_x101", LoadMaskRcnn},
    {"ea_psmnet", LoadPsmnet},
    {"ea_rc3d", LoadRc3d},
    {"expatt_mobilenetv2", LoadMobile},
    {"expatt_resnet101", LoadResidual},
    {"expatt_resnet152", LoadResidual},
    {"expatt_resnet34", LoadResidual},
    {"expatt_resnet50", LoadResidual},
    {"gsa_resnet101", LoadResidual},
    {"gsa_resnet38", LoadResidual},
    {"gsa_resnet50", LoadResidual},
    {"identity", LoadIdentity},
    {"kanet_kv", LoadMobile},
    {"kanet_qkv", LoadMobile},
    {"mobilenetv2", LoadMobile},
    {"mobilenetv2_kao", LoadMobile},
    {"mobilenetv2_sao", LoadMobile},
    {"sanet", LoadMobile},
    {"unet3d_sao_denoise", LoadUnet},
    {"unet3d_sao_project", LoadUnet},
};

std::unique_ptr<Model> Make(const std::string& architecture, const Options& options,
                            const std::string& weights_path, const std::vector<std::string>& labels,
                            const Target& target) {
  for (const Loader& loader : kLoaders) {
    if (architecture == loader.name)
      return loader.load(architecture, WithoutPrecision(options), weights_path, labels, target);
  }
  throw LoadError(architecture + " has a description, but no loader; this is a bug in saccade");
}

}  // namespace

std::unique_ptr<Model> Load(const std::string& architecture, const Options& options,
                            const std::string& weights_path, const std::vector<std::string>& labels,
                            std::optional<int> gpu) {
  // Reports a bad name, option or label before errors in the weights file.
  Describe(architecture, options, labels);
  Target target{gpu.value_or(-1), PrecisionOf(options)};
  try {
    if (gpu)
      return LoadOnGpu(target, [&] { return Make(architecture, options, weights_path, labels, target); });
    if (target.precision != Precision::kFloat32) {
      throw LoadError(std::string("precision is ") + PrecisionName(target.precision) +
                      ", which needs a GPU; expected fp32 on the CPU. Remove the option, or give "
                      "the model an instance_group of KIND_GPU");
    }
    return Make(architecture, options, weights_path, labels, target);
  } catch (const LoadError&) {
    throw;
  } catch (const std::exception& error) {
    // LibTorch's own errors, mostly out of memory, become LoadErrors too, the only error that callers handle.
    throw LoadError(weights_path + ": cannot load " + architecture + ": " + error.what());
  }
}

}  // namespace saccade::models
