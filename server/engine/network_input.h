// Converts a request's input to items: checks it against the model's input, and decodes or pads it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "models/api/placement.h"
#include "models/tasks/tiles.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/decode/decoder.h"
#include "server/engine/item_memory.h"
#include "server/engine/item_sink.h"

namespace saccade::server {

// Checks that cost nothing. INVALID_ARGUMENT if the input is of another kind (picture, stereo pair, clip,
// volume) than the model's, and for tensors as CheckTensor.
absl::Status CheckInput(const Request& request, const std::string& model, const models::ImageInput& input);

// True if the client's bytes are the network's input, except for padding.
bool IsReady(const Request& request);

// Adds the items to the sink, and charges it for them. Expensive unless IsReady(request); then run it on the
// decode pool. REQUIRES: CheckInput() returned OK. Errors of reading and decoding begin with the input's
// name; others are those of AddDecodedBytes and CheckAlive. On error the caller must still refuse the
// request. Pictures are cut into `tiles`, unless their size is 0; then REQUIRES: CheckTiles() returned OK.
// `map` is charged for, too; a picture that is too large to be decoded whole cannot have one.
absl::Status MakeItems(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder, Clock* clock,
                       const models::TileRules& tiles = {}, ResultMap map = ResultMap::kLabels);

}  // namespace saccade::server
