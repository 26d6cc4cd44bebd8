// Bounds what the tags of a TIFF make libtiff allocate, before libtiff sees the file.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace saccade::server {

// libtiff copies the data of every tag when it reads a directory, and several tags may point at the same
// data. This follows up to `max_pages` directories and reads only their entries. INVALID_ARGUMENT, saying
// what was found and what is allowed, if
// - a directory has too many tags, or all together too many different ones,
// - the data of a directory's tags are too large, apart from the positions of strips and tiles,
// - the data of all tags are together larger than the file, so that some of them are shared.
// Damaged directories are left to libtiff, which does not read beyond the file. Thread-safe.
absl::Status CheckTiffTags(std::string_view bytes, int64_t max_pages);

}  // namespace saccade::server
