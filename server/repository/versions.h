// The numbered folders of a model and the weights in them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/repository/files.h"
#include "server/repository/model_settings.h"
#include "server/repository/repository.h"

namespace saccade::server {

// Every version, ascending. A version is a folder named by a positive integer; folders with another name are
// passed over, as in Triton. What is wrong within a version is its own status. An ensemble has no weights,
// and is version 1 if it has no folder at all. Blocks.
//
// The weights are the file `weights_file` if that is not empty, else one of the backend's usual names, else
// the only file with one of its endings:
//   saccade   weights.safetensors, model.safetensors, weights.pt; .safetensors, .pt, .pth
//   pytorch   model.pt, model.pt2; .pt, .pt2
absl::StatusOr<std::vector<ModelVersion>> ReadVersions(const RepositoryPath& model, Backend backend,
                                                       const std::string& weights_file);

// The name of the weights file in a version's folder, as above.
absl::StatusOr<std::string> ChooseWeights(const RepositoryPath& folder, Backend backend,
                                          const std::string& weights_file);

}  // namespace saccade::server
