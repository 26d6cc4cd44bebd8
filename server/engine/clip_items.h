// Makes clip items from separate frames or from a video.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/api/placement.h"
#include "server/decode/decoder.h"
#include "server/engine/item_sink.h"

namespace saccade::server {

// Adds the request's item of index `item`. Frame k of a video is the one visible k /
// input.clip.frames_per_second after its start. Frames added to reach the required multiple are zero. Charges
// the sink as the clip grows, and asks `wanted` before each frame.
absl::Status MakeClipItem(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                          const StillWanted& wanted, int64_t item);

}  // namespace saccade::server
