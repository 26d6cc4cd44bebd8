// A model's configuration as clients are told it.
#pragma once

#include "absl/status/statusor.h"
#include "inference/model_config.pb.h"
#include "server/inference/inference.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// The configuration as it was read, completed with what the daemon knows: inputs and outputs of a model that
// says itself what they are, and the defaults of versions, batching and instances. Dimensions are those of
// ModelMetadata without the batch's.
absl::StatusOr<inference::ModelConfig> ConfigOf(const ModelSettings& settings, const ModelInterface& model);

}  // namespace saccade::server
