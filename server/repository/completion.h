// Completes a configuration with information from the model's own files.
#pragma once

#include "absl/status/status.h"
#include "server/repository/files.h"
#include "server/repository/text_format.h"

namespace saccade::server {

// Completes a configuration. A file model.pt or model.pt2 implies backend pytorch, and model.onnx or
// model.xml a graph's. A safetensors file states the architecture and its options in __metadata__, as
// "saccade.architecture" and "saccade.option.NAME"; they are taken if the configuration names no
// architecture. The inputs and outputs that it lacks are an ONNX file's, unless the model takes `pictures`.
// Values in the configuration take precedence. Uses the highest version. Blocks on the file system. An error
// if the version's file cannot be read.
absl::Status Complete(const RepositoryPath& model, bool pictures, inference::ModelConfig* config);

}  // namespace saccade::server
