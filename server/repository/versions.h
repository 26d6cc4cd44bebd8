// Finds the numbered version folders of a model and the weights in them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/repository/files.h"
#include "server/repository/model_settings.h"
#include "server/repository/repository.h"

namespace saccade::server {

// Returns all versions, ascending. A version is a folder whose name is a positive integer without leading
// zeros. Folders with non-numeric names are skipped, as in Triton; other numeric names are an error. A
// problem inside a version is reported in its own status. An ensemble has no weights, and has version 1 if it
// has no version folder. Blocks on the file system.
//
// The weights file is `weights_file` if that is not empty, else a file with one of the backend's usual names,
// else the only file with one of its extensions:
//   saccade   weights.safetensors, model.safetensors, weights.pt; .safetensors, .pt, .pth
//   pytorch   model.pt, model.pt2; .pt, .pt2
absl::StatusOr<std::vector<ModelVersion>> ReadVersions(const RepositoryPath& model, Backend backend,
                                                       const std::string& weights_file);

// Returns the name of the weights file in a version's folder, chosen as above.
absl::StatusOr<std::string> ChooseWeights(const RepositoryPath& folder, Backend backend,
                                          const std::string& weights_file);

// Whether a file of this name can hold a model's weights or program.
bool IsWeightsName(absl::string_view name);

}  // namespace saccade::server
