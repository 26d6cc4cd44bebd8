// Makes items from the tiles of a picture: it is decoded once.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "models/api/description.h"
#include "models/tasks/tiles.h"
#include "server/decode/decoder.h"
#include "server/engine/item_memory.h"
#include "server/engine/item_sink.h"

namespace saccade::server {

// The most tiles of one picture.
constexpr int64_t kMaxTiles = 1024;

// The rules for a request's pictures: its own, or else `models_own`. A size of 0 means no tiles.
models::TileRules TilesFor(const Request& request, const models::TileRules& models_own);

// Checks that cost nothing. INVALID_ARGUMENT if `tiles` are not valid, if the model's results cannot be
// merged, or if the request asks for something that needs the whole picture.
absl::Status CheckTiles(const Request& request, const std::string& model,
                        const models::Description& description, const models::TileRules& tiles);

// Adds an item for each tile of the request's picture of index `item`, or a single one if one tile shows all
// of it. Charges for the picture, the inputs of all tiles and their `map`s before the picture
// is decoded. A picture that is read by regions is decoded and charged for one tile at a time.
// INVALID_ARGUMENT if the request's own tiles are larger than the picture, or if there are more than
// kMaxTiles, or than sink.max_items(), or if far more pixels of a TIFF's own tiles would be decoded than the
// tiles have. REQUIRES: CheckTiles() returned OK, and tiles.size > 0.
absl::Status MakeTileItems(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                           const StillWanted& wanted, int64_t item, const models::TileRules& tiles,
                           ResultMap map);

}  // namespace saccade::server
