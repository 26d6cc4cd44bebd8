#include "models/networks/rc3d/testing/models.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/upsample_trilinear3d.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "models/networks/rc3d/rc3d.h"
#include "models/networks/rc3d/table.h"
#include "models/testing/random_weights.h"

namespace saccade::models::testing {
namespace {

// Factor for random weights of the usual size. Attention and the branches of residual blocks are weak, as
// rounding errors would grow from layer to layer otherwise.
double Strength(const std::string& name) {
  if (name.ends_with("bn3.weight")) return 0.3;
  if (name.starts_with("attention.") && name.ends_with("out.weight")) return 0.2;
  if (name == "tpn.segment_pred.weight") return 0.1;
  if (name == "head.cls_score.weight") return 2;
  return 1;
}

}  // namespace

TensorMap Rc3dTensors(const Options& options) {
  TensorMap tensors = RandomTensors(RecordRc3d(ParseRc3dOptions("ea_rc3d", options)).tensors());
  for (auto& [name, tensor] : tensors) {
    // Batch norms' weights.
    if (tensor.dim() == 1 && name.ends_with(".weight")) tensor.abs_().add_(0.4);
    tensor.mul_(Strength(name));
  }
  return tensors;
}

std::unique_ptr<Model> MakeRc3d(const Options& options, const TensorMap& tensors, const Target& target) {
  const std::string path = ::testing::TempDir() + "/rc3d." + std::to_string(getpid());
  SaveSafetensors(tensors, path);
  auto model = LoadRc3d("ea_rc3d", options, path, {}, target);
  std::filesystem::remove(path);
  return model;
}

Options NarrowRc3d(const Options& more) {
  Options options = {{"width", "0.125"},     {"blocks", "1,1,2,1"},    {"classes", "4"},
                     {"key_channels", "16"}, {"value_channels", "16"}, {"size", "32"},
                     {"proposals", "40"},    {"detections", "20"},     {"anchors", "1,2,4"},
                     {"frames", "64"}};
  for (const auto& [name, value] : more) options[name] = value;
  return options;
}

Batch Clips(const std::vector<int64_t>& sent, int64_t frames, int64_t side) {
  const Size size{side, side};
  Batch batch;
  batch.pixels = at::zeros({static_cast<int64_t>(sent.size()), 3, frames, side, side});
  for (size_t i = 0; i < sent.size(); ++i) {
    const at::Tensor coarse = at::randn({1, 3, sent[i] / 4 + 2, 4, 4});
    batch.pixels[static_cast<int64_t>(i)]
        .narrow(1, 0, sent[i])
        .copy_(at::upsample_trilinear3d(coarse, {sent[i], side, side}, /*align_corners=*/false)[0]);
    batch.placements.push_back({size, size, size, sent[i], frames});
  }
  return batch;
}

}  // namespace saccade::models::testing
