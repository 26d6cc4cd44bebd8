// Bounds what the tables of an MP4 or MOV file make FFmpeg allocate, before FFmpeg sees the file.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace saccade::server {

// FFmpeg makes an index of all samples (frames, or pieces of sound), as many as a table claims in a few
// bytes, and room for as many entries as other tables claim; an edit list copies the index. INVALID_ARGUMENT,
// saying what was found and what is allowed, if the tables claim more samples or entries than fit into the
// file, too many samples, or too many entries of edit lists for their samples, if they are compressed, or if
// there are many texts or long names of texts, which FFmpeg compares with each other.
// Other damage is left to FFmpeg. Thread-safe.
absl::Status CheckMp4Samples(std::string_view bytes);

}  // namespace saccade::server
