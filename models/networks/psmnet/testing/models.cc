#include "models/networks/psmnet/testing/models.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "models/api/registry.h"
#include "models/networks/psmnet/table.h"
#include "models/testing/random_weights.h"

namespace saccade::models::testing {

std::unique_ptr<Model> MakePsmnet(const Options& options, const Options& trained) {
  TensorMap tensors = RandomTensors(RecordPsmnet(ParsePsmnetOptions("ea_psmnet", trained)).tensors());
  for (auto& [name, tensor] : tensors) {
    // Batch norms' weights; otherwise residual sums would double the signal in every block.
    if (tensor.dim() == 1 && name.ends_with(".weight")) tensor.abs_().add_(0.4);
  }
  const std::string path = ::testing::TempDir() + "/psmnet." + std::to_string(getpid());
  SaveSafetensors(tensors, path);
  auto model = Load("ea_psmnet", options, path);
  std::filesystem::remove(path);
  return model;
}

}  // namespace saccade::models::testing
