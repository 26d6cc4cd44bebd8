#include "models/api/registry.h"

#include "models/api/error.h"
#include "models/api/error_text.h"
#include "models/api/model.h"
#include "models/api/target.h"
#include "models/device/on_gpu.h"
#include "models/networks/architectures.h"
#include "models/networks/deeplab/deeplab.h"
#include "models/networks/identity/identity.h"
#include "models/networks/mask_rcnn/mask_rcnn.h"
#include "models/networks/mobile/mobile.h"
#include "models/networks/nearest.h"
#include "models/networks/nearest_text.h"
#include "models/networks/psmnet/psmnet.h"
#include "models/networks/rc3d/rc3d.h"
#include "models/networks/residual/residual.h"
#include "models/networks/unet3d/unet3d.h"
#include "models/weights/format/file_contents.h"
#include "models/weights/format/weights_format.h"
#include "models/weights/quantized_file.h"

namespace saccade::models {
namespace {

// Separate from architectures.cc, so that programs that only count parameters do not link LibTorch.
auto LoaderOf(Network network) {
  switch (network) {
    case Network::kDeepLab:
      return LoadDeepLab;
    case Network::kIdentity:
      return LoadIdentity;
    case Network::kMaskRcnn:
      return LoadMaskRcnn;
    case Network::kMobile:
      return LoadMobile;
    case Network::kPsmnet:
      return LoadPsmnet;
    case Network::kRc3d:
      return LoadRc3d;
    case Network::kResidual:
      return LoadResidual;
    case Network::kUnet3d:
      break;
  }
  return LoadUnet;
}

std::unique_ptr<Model> Make(const std::string& architecture, const Options& options,
                            const std::string& weights_path, const std::vector<std::string>& labels,
                            const Target& target) {
  const auto load = LoaderOf(NetworkOf(architecture));
  return load(architecture, WithoutPrecision(options), weights_path, labels, target);
}

// Lines about tensors that may have been renamed, and about the network that the file is nearer to.
std::string NearMissText(const std::string& architecture, const Options& options,
                         const std::string& weights_path) {
  const auto file = ReadWeightsIndex(weights_path);
  const NearestNetwork nearest =
      Nearest(ParseWeights(file->bytes()), architecture, WithoutPrecision(options));
  std::string text;
  const auto add = [&text](const std::string& line) {
    if (!line.empty()) text += "\n  " + line;
  };
  if (nearest.architecture != architecture || !nearest.prefix.empty()) add(NearestText(nearest));
  for (const std::string& renamed : RenamedTexts(nearest.fit)) add(renamed);
  return text;
}

// nullopt if the file cannot be read.
std::optional<bool> QuantizedOrUnknown(const std::string& weights_path) {
  try {
    return IsQuantized(weights_path);
  } catch (const LoadError&) {
    // Loading the weights says what is wrong with them.
    return std::nullopt;
  }
}

// Throws a LoadError if the file is quantized and the network is not to compute so, or the other way round.
void CheckQuantized(const std::string& weights_path, const Target& target) {
  const std::optional<bool> quantized = QuantizedOrUnknown(weights_path);
  if (!quantized || *quantized == (target.precision == Precision::kInt8)) return;
  if (target.calibration != nullptr)
    throw LoadError(weights_path + ": is quantized already; name the weights from which it was made");
  if (*quantized) {
    throw LoadError(weights_path + ": is quantized to int8, but precision is " +
                    PrecisionName(target.precision) +
                    "; set the option precision to int8, or name the weights from which it was made");
  }
  throw LoadError(weights_path + ": precision is int8, but no weight in the file is quantized; make " +
                  kInt8WeightsName + " with saccade quantize");
}

std::unique_ptr<Model> LoadFor(const Target& target, const std::string& architecture, const Options& options,
                               const std::string& weights_path, const std::vector<std::string>& labels) {
  // Reports a bad name, option or label before errors in the weights file.
  Describe(architecture, options, labels);
  try {
    if (target.on_gpu())
      return LoadOnGpu(target, [&] { return Make(architecture, options, weights_path, labels, target); });
    CheckCpuPrecision(target.precision);
    CheckQuantized(weights_path, target);
    return Make(architecture, options, weights_path, labels, target);
  } catch (const MisfitError& error) {
    throw LoadError(error.what() + NearMissText(architecture, options, weights_path));
  } catch (const LoadError&) {
    throw;
  } catch (const std::exception& error) {
    // LibTorch's own errors, mostly out of memory, become LoadErrors too, the only error that callers handle.
    throw LoadError(weights_path + ": cannot load " + architecture + ": " + ErrorText(error));
  }
}

}  // namespace

std::unique_ptr<Model> Load(const std::string& architecture, const Options& options,
                            const std::string& weights_path, const std::vector<std::string>& labels,
                            std::optional<int> gpu) {
  const Target target{gpu.value_or(-1), PrecisionOf(options)};
  if (target.on_gpu() && target.precision == Precision::kInt8) {
    throw LoadError(
        "precision is int8, which only the CPU computes; expected fp32, tf32, bf16 or fp16 on a GPU");
  }
  return LoadFor(target, architecture, options, weights_path, labels);
}

std::unique_ptr<Model> LoadToCalibrate(const std::string& architecture, const Options& options,
                                       const std::string& weights_path,
                                       const std::vector<std::string>& labels, Calibration& calibration) {
  return LoadFor({.calibration = &calibration}, architecture, options, weights_path, labels);
}

}  // namespace saccade::models
