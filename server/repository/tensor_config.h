// Reads the inputs and outputs that config.pbtxt declares.
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

// `field` is the path of the field in errors.
absl::StatusOr<DataType> ReadDataType(inference::DataType type, absl::string_view field,
                                      const ConfigCheck& check);

// Checks that there are 1 to 16 dimensions, each at least `min`. With `free`, -1 is allowed too.
absl::Status CheckDims(const std::vector<int64_t>& dims, int64_t min, bool free, absl::string_view field,
                       const ConfigCheck& check);

// Checks that the name has 1 to 256 printable ASCII characters.
absl::Status CheckTensorName(const std::string& name, absl::string_view field, const ConfigCheck& check);

// Sets the inputs and the outputs, except the outputs' labels, whose files it stores in `label_files`, one
// per output (empty where there is none).
absl::Status ReadTensors(const inference::ModelConfig& config, const ConfigCheck& check,
                         ModelSettings* settings, std::vector<std::string>* label_files);

// Checks that `name` is a plain file name, without a folder.
absl::Status CheckFileName(absl::string_view field, const std::string& name, const ConfigCheck& check);

}  // namespace saccade::server
