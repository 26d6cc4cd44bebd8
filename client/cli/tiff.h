// Volumes as TIFF files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/types.h"

namespace saccade::client {

// All of an uncompressed grey TIFF file that comes before its voxels, which follow as they are:
// little-endian, a page a plane. The first page says so in the words by which ImageJ knows a stack, and in
// which range it is to be shown. OUT_OF_RANGE if the file would exceed the 4 GiB that TIFF's offsets reach.
absl::StatusOr<std::string> TiffHead(const VolumeShape& shape, float least, float most);

}  // namespace saccade::client
