// Bounds what the texts and headers of an AVI make FFmpeg allocate and compare, before FFmpeg sees the file.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace saccade::server {

// FFmpeg compares each text of a file with all others, and makes room for a stream's name and settings as
// long as their chunk claims to be. INVALID_ARGUMENT, saying what was found and what is allowed, if there are
// too many texts or such a chunk is longer than the file. Other damage is left to FFmpeg. Thread-safe.
absl::Status CheckAviChunks(std::string_view bytes);

}  // namespace saccade::server
