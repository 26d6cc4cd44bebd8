// Volumes as they lie on disk.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/types.h"

namespace saccade::client {

// Reads the file part by part while it is sent; without `raw` it is a TIFF file. Errors say what is wrong
// with it, then and now: missing, no permission, a directory, empty, not of the size that `raw` asks for, cut
// short.
absl::StatusOr<VolumeSource> OpenVolume(const std::string& path, const std::optional<VolumeShape>& raw);

// Of "24x512x512": depth, height, width. INVALID_ARGUMENT for what is no such text, or too large to count.
absl::StatusOr<VolumeShape> ParseShape(const std::string& text);

// "uint8", "uint16" or "float32".
std::string NameOf(VoxelType type);

// "24x512x512 uint16".
std::string NameOf(const VolumeShape& shape);

}  // namespace saccade::client
