// Makes clip items from separate frames or from a video.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/api/placement.h"
#include "server/core/clock.h"
#include "server/decode/picture_header.h"
#include "server/engine/item_sink.h"

namespace saccade::server {

// Adds the request's item of index `item`. Frame k of a video is the one visible k /
// input.clip.frames_per_second after its start. Frames added to reach the required multiple are zero. Charges
// the sink as the clip grows, and regularly checks that the request is alive.
absl::Status MakeClipItem(ItemSink& sink, const models::ImageInput& input, const DecodeLimits& limits,
                          Clock* clock, int64_t item);

}  // namespace saccade::server
