// Inputs and outputs that config.pbtxt declares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// `field` is what says so, in errors.
absl::StatusOr<DataType> ReadDataType(inference::DataType type, absl::string_view field,
                                      const ConfigCheck& check);

// 1 to 16 extents, each at least `least`. With `free`, -1 is legal too.
absl::Status CheckDims(const std::vector<int64_t>& dims, int64_t least, bool free, absl::string_view field,
                       const ConfigCheck& check);

// 1 to 256 printable ASCII characters.
absl::Status CheckTensorName(const std::string& name, absl::string_view field, const ConfigCheck& check);

// Sets inputs and outputs but for the outputs' labels, whose files it names by output in `label_files` (empty
// where there is none).
absl::Status ReadTensors(const inference::ModelConfig& config, const ConfigCheck& check,
                         ModelSettings* settings, std::vector<std::string>* label_files);

// The plain name of a file, without a folder.
absl::Status CheckFileName(absl::string_view field, const std::string& name, const ConfigCheck& check);

}  // namespace saccade::server
