// Makes items from volumes: their voxels as floats, unscaled.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/api/placement.h"
#include "server/decode/decoder.h"
#include "server/engine/item_sink.h"

namespace saccade::server {

// Adds the request's item of index `item`. Charges for its floats and for an answer of the same size before
// either is allocated. An error of `wanted` ends the decoding.
absl::Status MakeVolumeItem(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                            const StillWanted& wanted, int64_t item);

}  // namespace saccade::server
