// The pixels of a picture's tiles.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/api/placement.h"
#include "models/tasks/tiles.h"
#include "server/core/request.h"
#include "server/decode/decoder.h"
#include "server/engine/item_sink.h"

namespace saccade::server {

// Tiles of a decoded picture, or read one by one if it is too large to be decoded. Not thread-safe.
class TilePixels {
 public:
  // Charges for the pixels before they take memory: the whole picture, or one tile of it if it is read by
  // regions. `tile` is the size of each tile. INVALID_ARGUMENT if a tile has too many pixels to be decoded at
  // once, or if the request's region extends beyond the picture; others are the decoder's. All arguments but
  // the sink and the input must outlive the result.
  static absl::StatusOr<TilePixels> Open(ItemSink& sink, const models::ImageInput& input,
                                         const Decoder& decoder, const StillWanted& wanted,
                                         const Picture& picture, const PictureHeader& header,
                                         models::Size tile);

  models::Size whole() const { return whole_; }
  // The size of what is cut into tiles.
  models::Size cut() const {
    if (regions_ == nullptr) return decoded_.sent;
    return {frame_.height, frame_.width};
  }

  // The result is valid until the next call.
  absl::StatusOr<DecodedPicture> Read(const models::Tile& tile);

 private:
  DecodedPicture decoded_;
  std::unique_ptr<PictureRegions> regions_;
  models::Size whole_;
  // What is cut, in the whole picture.
  Region frame_;
};

}  // namespace saccade::server
