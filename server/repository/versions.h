// The numbered folders of a model and the weights in them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/repository/files.h"
#include "server/repository/repository.h"

namespace saccade::server {

// Every version, ascending. A version is a folder named by a positive integer; folders with another name are
// passed over, as in Triton. One version without weights is an error of the whole model: what was put there
// is meant to be served.
//
// The weights are the file `weights_file` if that is not empty, else weights.safetensors, model.safetensors
// or weights.pt, in this order, else the only file that ends in .safetensors, .pt or .pth. Blocks.
absl::StatusOr<std::vector<ModelVersion>> ReadVersions(const RepositoryPath& model,
                                                       const std::string& weights_file);

}  // namespace saccade::server
