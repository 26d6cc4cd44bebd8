// Every architecture the daemon knows, by name. No LibTorch here; to use what Load returns, include model.h.
// All functions may be called from any thread, and throw LoadError as models/error.h says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/counts.h"
#include "models/description.h"
#include "models/options.h"

namespace saccade::models {

class Model;

// Sorted.
std::vector<std::string> Architectures();

// What the model would say of itself, without weights. `labels` is empty or has one entry per class.
Description Describe(const std::string& architecture, const Options& options,
                     const std::vector<std::string>& labels = {});

// Reads and checks the weights (safetensors or a PyTorch state_dict; told apart by content), folds and packs
// them, for the CPU or for this GPU. Blocks for the file's reading; the file may be replaced or removed
// afterwards. Besides its own, every architecture has the option precision: fp32, and on a GPU tf32, bf16 and
// fp16 too.
std::unique_ptr<Model> Load(const std::string& architecture, const Options& options,
                            const std::string& weights_path, const std::vector<std::string>& labels = {},
                            std::optional<int> gpu = std::nullopt);

// Parameters and multiply-adds, layer by layer.
Counts Count(const std::string& architecture, const Options& options);

}  // namespace saccade::models
