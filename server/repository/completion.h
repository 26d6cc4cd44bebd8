// What a configuration leaves out and the model's own files tell.
#pragma once

#include "absl/status/status.h"
#include "server/repository/files.h"
#include "server/repository/text_format.h"

namespace saccade::server {

// Of a configuration that names neither a backend of others nor an architecture: a model.pt or model.pt2 is
// backend pytorch's; a safetensors file tells the architecture and its options in its __metadata__, as
// "saccade.architecture" and "saccade.option.NAME". What the configuration says stands. Looks at the highest
// version; blocks. An error if its file cannot be read.
absl::Status Complete(const RepositoryPath& model, inference::ModelConfig* config);

}  // namespace saccade::server
