// Reads a video in memory frame by frame with FFmpeg's libraries.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/decode/video.h"

namespace saccade::server {

// Opens `bytes`, which must outlive the result, as `container`, FFmpeg's name of the format. Nothing but
// these bytes is read, and nothing is decoded yet. Errors as for Video::Open. May throw std::bad_alloc.
absl::StatusOr<std::unique_ptr<Video>> OpenWithFfmpeg(std::string_view bytes, const char* container,
                                                      const DecodeLimits& limits, const StillWanted& wanted);

}  // namespace saccade::server
