// All architectures that the daemon knows, by name. Does not include LibTorch; include model.h to use the
// result of Load(). All functions may be called from any thread, and throw LoadError (models/api/error.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/api/counts.h"
#include "models/api/description.h"
#include "models/api/options.h"

namespace saccade::models {

class Calibration;
class Model;

// Names of all architectures, sorted.
std::vector<std::string> Architectures();

// Returns the description that a loaded model would have, without weights. `labels` is empty or has one entry
// per class.
Description Describe(const std::string& architecture, const Options& options,
                     const std::vector<std::string>& labels = {});

// Reads and checks the weights (safetensors or a PyTorch state_dict, distinguished by content), and folds and
// packs them for the CPU or for the given GPU. Blocks while reading the file, which may be replaced or
// removed afterwards. Besides its own options, every architecture has `precision`: fp32, bf16
// or, with weights that are quantized, int8, and on a GPU also tf32 and fp16, but not int8
// (models/api/target.h).
std::unique_ptr<Model> Load(const std::string& architecture, const Options& options,
                            const std::string& weights_path, const std::vector<std::string>& labels = {},
                            std::optional<int> gpu = std::nullopt);

// Loads the network in float32 on the CPU, with convolutions that report to `calibration`
// (models/layers/calibration.h), which outlives it. The weights must not be quantized already.
std::unique_ptr<Model> LoadToCalibrate(const std::string& architecture, const Options& options,
                                       const std::string& weights_path,
                                       const std::vector<std::string>& labels, Calibration& calibration);

// Returns parameters and multiply-adds, layer by layer.
Counts Count(const std::string& architecture, const Options& options);

}  // namespace saccade::models
