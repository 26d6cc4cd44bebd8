// Bounds how many frames a Matroska or WebM file makes FFmpeg read, before FFmpeg sees the file.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace saccade::server {

// A block may hold 256 frames without a byte for each (lacing), and a track may have bytes or compression
// that each of its frames is made larger by. INVALID_ARGUMENT, saying what was found and what is allowed, if
// the blocks have more frames together than fit into the file, or too many, or if frames become much larger
// when they are read. Other damage is left to FFmpeg. Thread-safe.
absl::Status CheckMatroskaFrames(std::string_view bytes);

}  // namespace saccade::server
