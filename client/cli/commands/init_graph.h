// What `saccade init` writes for an ONNX file.
#pragma once

#include <string>
#include <string_view>

#include "client/cli/commands/init_folder.h"

namespace saccade::client {

// Whether the file is named as an ONNX file, or begins as one.
bool IsOnnx(const std::string& path, std::string_view file);

// Reads the inputs and outputs, and checks that the files with its external data are beside it. `has_labels`:
// the first output gets label_filename. Throws models::LoadError.
ModelFolder FolderOfOnnx(const std::string& path, std::string_view file, bool has_labels);

}  // namespace saccade::client
