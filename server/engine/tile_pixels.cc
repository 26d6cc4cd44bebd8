#include "server/engine/tile_pixels.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/engine/item_memory.h"

namespace saccade::server {

absl::StatusOr<TilePixels> TilePixels::Open(ItemSink& sink, const models::ImageInput& input,
                                            const Decoder& decoder, const StillWanted& wanted,
                                            const Picture& picture, const PictureHeader& header,
                                            models::Size tile) {
  const std::optional<Region>& region = sink.request().region;
  TilePixels made;
  made.frame_ = region.value_or(Region{});
  if (!header.by_regions) {
    if (absl::Status taken = sink.AddDecodedBytes(PictureBytes(header.pixels())); !taken.ok()) return taken;
    // Tiles are cut from the picture at its full size.
    models::ImageInput whole = input;
    whole.reduced_jpeg = false;
    auto decoded = decoder.Decode(picture, header, whole, region, wanted);
    if (!decoded.ok()) return decoded.status();
    made.whole_ = decoded->whole;
    made.decoded_ = *std::move(decoded);
    return made;
  }
  made.whole_ = {header.height, header.width};
  if (!region)
    made.frame_ = {.width = static_cast<int>(header.width), .height = static_cast<int>(header.height)};
  if (absl::Status within = CheckWithin(made.frame_, made.whole_); !within.ok()) return within;
  if (const int64_t most = decoder.limits().max_pixels; tile.height * tile.width > most) {
    return Invalid("tiles.size",
                   absl::StrCat("is ", std::max(tile.width, tile.height), ", but at most ", most,
                                " pixels of a picture are decoded at once; expected less"));
  }
  if (absl::Status taken = sink.AddDecodedBytes(PictureBytes(tile.height * tile.width)); !taken.ok())
    return taken;
  auto regions = decoder.OpenRegions(picture, header, wanted);
  if (!regions.ok()) return regions.status();
  made.regions_ = *std::move(regions);
  return made;
}

absl::StatusOr<DecodedPicture> TilePixels::Read(const models::Tile& tile) {
  Region region{.x = static_cast<int>(tile.x),
                .y = static_cast<int>(tile.y),
                .width = static_cast<int>(tile.width),
                .height = static_cast<int>(tile.height)};
  if (regions_ == nullptr) {
    DecodedPicture part = decoded_;
    // The tile lies in what is cut, which may be a region of the picture already.
    part.whole = part.sent;
    if (absl::Status cut = CutRegion(region, part); !cut.ok()) return cut;
    return part;
  }
  region.x += frame_.x;
  region.y += frame_.y;
  return regions_->Read(region);
}

}  // namespace saccade::server
