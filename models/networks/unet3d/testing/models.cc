#include "models/networks/unet3d/testing/models.h"

#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "models/networks/unet3d/table.h"
#include "models/networks/unet3d/unet3d.h"
#include "models/testing/random_weights.h"

namespace saccade::models::testing {

std::unique_ptr<Model> MakeUnet(const std::string& architecture, const Options& options,
                                const Target& target) {
  TensorMap tensors = RandomTensors(RecordUnet(ParseUnetOptions(architecture, options)).tensors());
  for (auto& [name, tensor] : tensors) {
    if (name.ends_with("attention.bn.running_var")) tensor.fill_(1);  // attention is a mean here, not a sum
    if (tensor.dim() == 1 && name.ends_with(".weight") && !name.ends_with("attention.bn.weight")) {
      tensor.abs_().add_(0.6);
    }
  }
  const std::string path = ::testing::TempDir() + "/unet3d." + std::to_string(getpid());
  SaveSafetensors(tensors, path);
  auto model = LoadUnet(architecture, options, path, {}, target);
  std::filesystem::remove(path);
  return model;
}

Batch Volumes(int64_t count, int64_t depth, int64_t height, int64_t width) {
  const Placement placement = PlacementOfVolume({height, width}, depth);
  return {at::rand({count, 1, depth, height, width}).mul_(200).add_(100),
          std::vector<Placement>(static_cast<size_t>(count), placement)};
}

}  // namespace saccade::models::testing
