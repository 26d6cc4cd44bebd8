#include "models/networks/architectures.h"
#include "models/api/error.h"
#include "models/api/registry.h"
#include "models/api/target.h"
#include "models/api/text.h"
#include "models/networks/deeplab/describe.h"
#include "models/networks/identity/describe.h"
#include "models/networks/mask_rcnn/describe.h"
#include "models/networks/mobile/describe.h"
#include "models/networks/network_tensors.h"
#include "models/networks/psmnet/describe.h"
#include "models/networks/rc3d/describe.h"
#include "models/networks/residual/describe.h"
#include "models/networks/unet3d/describe.h"

namespace saccade::models {
namespace {

// What one folder of models/networks provides without LibTorch.
struct NetworkFunctions {
  Description (*describe)(const std::string& architecture, const Options&, const std::vector<std::string>&);
  Counts (*count)(const std::string& architecture, const Options&);
  NetworkTensors (*tensors)(const std::string& architecture, const Options&);
};

NetworkFunctions FunctionsOf(Network network) {
  switch (network) {
    case Network::kDeepLab:
      return {DescribeDeepLab, CountDeepLab, DeepLabTensors};
    case Network::kIdentity:
      return {DescribeIdentity, CountIdentity, IdentityTensors};
    case Network::kMaskRcnn:
      return {DescribeMaskRcnn, CountMaskRcnn, MaskRcnnTensors};
    case Network::kMobile:
      return {DescribeMobile, CountMobile, MobileTensors};
    case Network::kPsmnet:
      return {DescribePsmnet, CountPsmnet, PsmnetTensors};
    case Network::kRc3d:
      return {DescribeRc3d, CountRc3d, Rc3dTensors};
    case Network::kResidual:
      return {DescribeResidual, CountResidual, ResidualTensors};
    case Network::kUnet3d:
      break;
  }
  return {DescribeUnet, CountUnet, UnetTensors};
}

void CheckLabels(const Description& description) {
  const auto labels = static_cast<int64_t>(description.labels.size());
  if (labels == 0 || labels == description.classes) return;
  throw LoadError(description.architecture + ": there are " + std::to_string(labels) + " labels for " +
                  std::to_string(description.classes) +
                  " classes; give one per class, or set the option classes");
}

}  // namespace

Network NetworkOf(const std::string& name) {
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name) return architecture.network;
  }
  const std::string meant = NearestWord(name, Architectures());
  throw LoadError("unknown architecture " + Quote(name) +
                  (meant.empty() ? "" : "; did you mean " + Quote(meant) + "?") +
                  "; the architectures are: " + Joined(Architectures(), ", "));
}

std::vector<std::string> Architectures() {
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) names.emplace_back(architecture.name);
  return names;
}

Description Describe(const std::string& architecture, const Options& options,
                     const std::vector<std::string>& labels) {
  PrecisionOf(options);
  const NetworkFunctions network = FunctionsOf(NetworkOf(architecture));
  Description description = network.describe(architecture, WithoutPrecision(options), labels);
  CheckLabels(description);
  return description;
}

Counts Count(const std::string& architecture, const Options& options) {
  return FunctionsOf(NetworkOf(architecture)).count(architecture, WithoutPrecision(options));
}

NetworkTensors TensorsOf(const std::string& architecture, const Options& options) {
  return FunctionsOf(NetworkOf(architecture)).tensors(architecture, WithoutPrecision(options));
}

}  // namespace saccade::models
