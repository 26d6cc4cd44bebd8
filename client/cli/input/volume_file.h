// Reads volumes from files.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "client/cpp/types.h"

namespace saccade::client {

// Opens a volume that is read part by part while it is sent; a TIFF file unless `raw` is set. Errors of this
// call, and later of read, say what is wrong with the file: missing, no permission, a directory, empty, not
// the size that `raw` requires, or truncated.
absl::StatusOr<VolumeSource> OpenVolume(const std::string& path, const std::optional<VolumeShape>& raw);

// Parses depth, height and width, for example "24x512x512". INVALID_ARGUMENT if the text is malformed or the
// size overflows.
absl::StatusOr<VolumeShape> ParseShape(const std::string& text);

}  // namespace saccade::client
