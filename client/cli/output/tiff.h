// Writes volumes as TIFF files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/types.h"

namespace saccade::client {

// Returns everything of an uncompressed grey TIFF file that precedes the voxels, which follow unchanged:
// little-endian, one page per plane. The description of the first page marks an ImageJ stack and gives the
// range of values to display. OUT_OF_RANGE if the file would exceed the 4 GiB that TIFF's offsets can
// address.
absl::StatusOr<std::string> TiffHead(const VolumeShape& shape, float min, float max);

}  // namespace saccade::client
