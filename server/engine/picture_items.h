// Makes items from pictures and stereo pairs.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/api/placement.h"
#include "server/decode/decoder.h"
#include "server/engine/item_memory.h"
#include "server/engine/item_sink.h"

namespace saccade::server {

// Adds the request's item of index `item`. Charges for every picture before it is decoded, and for the
// network's input and for the scaling before memory is allocated for them. An error of `wanted` ends the
// decoding, if `decoder` supports that. Charges for the result's `map` what it takes beyond the decoded
// picture, which is freed before it is made.
absl::Status MakePictureItem(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                             const StillWanted& wanted, int64_t item, ResultMap map);

}  // namespace saccade::server
