// A model's configuration for clients.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "server/catalog/catalog.h"
#include "server/inference/inference.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// The configuration as read, completed with what the daemon knows: inputs and outputs of a model that defines
// them itself, and the defaults of versions, batching and instances. Dimensions are those of ModelMetadata
// without the batch dimension.
absl::StatusOr<inference::ModelConfig> ConfigOf(const ModelSettings& settings, const ModelInterface& model);

// For a model that is ready. `version` is written as in a request. Errors of ModelTable::VersionOf and
// Inference::Describe.
absl::StatusOr<inference::ModelConfig> ConfigOf(const Catalog& catalog, const Inference& inference,
                                                absl::string_view name, absl::string_view version);

}  // namespace saccade::server
