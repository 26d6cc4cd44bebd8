#include "server/engine/tile_items.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "models/tasks/merge_tiles.h"
#include "server/core/errors.h"
#include "server/decode/prepare.h"
#include "server/engine/item_error.h"
#include "server/engine/tile_pixels.h"

namespace saccade::server {
namespace {

models::Size Turned(models::Size size) { return {size.width, size.height}; }

int64_t AreaOf(models::Size size) { return size.height * size.width; }

// The size of each tile.
models::Size TileSize(models::Size picture, const models::TileRules& tiles) {
  return {std::min(tiles.size, picture.height), std::min(tiles.size, picture.width)};
}

// Memory for the inputs of all tiles, and for two maps of each tile: its own and its part of the merged one.
int64_t BytesOf(const models::ImageInput& input, models::Size picture, const models::TileRules& tiles,
                ResultMap map) {
  const models::Size tile = TileSize(picture, tiles);
  const int64_t bytes =
      FloatBytes(3 * AreaOf(models::PlacementOf(input, tile).bucket)) + MapBytes(map) * AreaOf(tile);
  return models::CountTiles(picture, tiles) * bytes;
}

absl::Status CheckPicture(const ItemSink& sink, models::Size picture, const models::TileRules& tiles) {
  const Request& request = sink.request();
  const int64_t longer = std::max(picture.height, picture.width);
  if (request.tiles && tiles.size > longer) {
    return Invalid("tiles.size", absl::StrCat("is ", tiles.size, ", but the picture is ", picture.width,
                                              " x ", picture.height, "; expected 1 to ", longer));
  }
  const int64_t count = models::CountTiles(picture, tiles);
  const auto too_many = [&](const auto&... expected) {
    return Invalid("tiles", absl::StrCat("cut the picture of ", picture.width, " x ", picture.height,
                                         " into ", count, " tiles of ", tiles.size, " with an overlap of ",
                                         tiles.overlap, "; expected at most ", expected...));
  };
  if (count > kMaxTiles) return too_many(kMaxTiles, ": make the size larger or the overlap smaller");
  const int64_t room = sink.max_items() - sink.item_count();
  // A single item waits, or is rejected by a queue that is full now.
  if (count == 1 || count <= room) return absl::OkStatus();
  const std::string others =
      sink.item_count() > 0 ? absl::StrCat(" beside the ", sink.item_count(), " of earlier pictures") : "";
  return too_many(std::max<int64_t>(0, room), others,
                  ", because the queue of the model holds no more (max_queue_size): make the size larger or "
                  "the overlap smaller, or raise --max-queue-size of the daemon, or max_queue_size of the "
                  "model's default_queue_policy if its configuration sets that");
}

// How many pixels of the file's own tiles may be decoded for each pixel of the tiles that are cut, beyond
// those of the largest picture that is decoded at once.
constexpr int64_t kMaxStoredShare = 64;

// Pixels along one side of the file's own tiles that a cut tile may touch: of those that a picture has.
int64_t TouchedPixels(int64_t side, int64_t own, int64_t picture) {
  return std::min((side + own - 2) / own + 1, (picture + own - 1) / own) * own;
}

// For each tile that is cut, all of the file's own tiles that it touches are decoded whole.
absl::Status CheckStoredTiles(const PictureHeader& header, models::Size picture,
                              const models::TileRules& tiles, const DecodeLimits& limits) {
  if (!header.by_regions) return absl::OkStatus();
  const models::Size tile = TileSize(picture, tiles);
  const int64_t count = models::CountTiles(picture, tiles);
  // As doubles, because a file may claim sides whose product is no int64_t.
  const double decoded = static_cast<double>(count) *
                         static_cast<double>(TouchedPixels(tile.width, header.tile_width, header.width)) *
                         static_cast<double>(TouchedPixels(tile.height, header.tile_height, header.height));
  const double most = static_cast<double>(limits.max_pixels) + static_cast<double>(kMaxStoredShare * count) *
                                                                   static_cast<double>(tile.height) *
                                                                   static_cast<double>(tile.width);
  if (decoded <= most) return absl::OkStatus();
  return Invalid(
      "tiles.size",
      absl::StrCat("is ", tiles.size, ", but the TIFF's own tiles of ", header.tile_width, " x ",
                   header.tile_height, " pixels would be decoded for each of ", count, " tiles, up to ",
                   absl::StrFormat("%.0f", decoded), " pixels together; expected at most ",
                   absl::StrFormat("%.0f", most),
                   ": make the size larger, or save the TIFF again in tiles of 256 x 256, for example"));
}

// The size that is cut, as far as the header tells: it may be turned by its orientation.
models::Size StoredSize(const Request& request, const PictureHeader& header) {
  if (request.region) return {request.region->height, request.region->width};
  return {header.height, header.width};
}

// The picture may be turned by its orientation, which only decoding tells.
absl::Status CheckRegionFits(const std::optional<Region>& region, const PictureHeader& header) {
  if (!region) return absl::OkStatus();
  absl::Status upright = CheckWithin(*region, {header.height, header.width});
  if (upright.ok() || CheckWithin(*region, {header.width, header.height}).ok()) return absl::OkStatus();
  return upright;
}

// Adds the item of a tile, whose pixels are `part`. `writing` is as for ChargeWriting().
absl::Status AddTile(ItemSink& sink, const models::ImageInput& input, const DecodedPicture& part,
                     int64_t& writing) {
  const models::Placement placement = models::PlacementOf(input, part.sent);
  const int64_t floats = 3 * AreaOf(placement.bucket);
  auto room = Allocate(floats);
  if (!room.ok()) return room.status();
  const absl::Span<float> pixels(room->get(), static_cast<size_t>(floats));
  absl::Status taken = ChargeWriting(sink, part, input, placement, writing);
  if (!taken.ok()) return taken;
  if (absl::Status written = WriteInput(part, input, placement, pixels); !written.ok()) return written;
  sink.AddItem({placement, absl::Span<const float>(pixels), *std::move(room)});
  return absl::OkStatus();
}

// The size that the whole picture has at the scale of its tiles.
models::Size ScaledSize(const models::ImageInput& input, models::Size picture, const models::Tile& tile) {
  const models::Size scaled = models::PlacementOf(input, {tile.height, tile.width}).scaled;
  return {std::max<int64_t>(1, picture.height * scaled.height / tile.height),
          std::max<int64_t>(1, picture.width * scaled.width / tile.width)};
}

}  // namespace

models::TileRules TilesFor(const Request& request, const models::TileRules& models_own) {
  return request.tiles.value_or(models_own);
}

absl::Status CheckTiles(const Request& request, const std::string& model,
                        const models::Description& description, const models::TileRules& tiles) {
  if (tiles.size == 0) return absl::OkStatus();
  if (!models::IsValid(tiles)) {
    return Invalid("tiles", absl::StrCat("have a size of ", tiles.size, " and an overlap of ", tiles.overlap,
                                         "; expected a size of 1 to ", models::kMaxTileSize,
                                         ", and an overlap of 0 to half of it"));
  }
  if (!models::CanMergeTiles(description.task)) {
    return Invalid("tiles", absl::StrCat("are set, but the task of model '", model, "' is ",
                                         models::TaskName(description.task),
                                         "; expected a model whose task is detection or segmentation"));
  }
  if (!request.explain) return absl::OkStatus();
  return Invalid(
      "explain",
      "needs the whole picture, but it is cut into tiles; leave tiles out, or set tiles.whole if they "
      "are the model's own");
}

absl::Status MakeTileItems(ItemSink& sink, const models::ImageInput& input, const Decoder& decoder,
                           const StillWanted& wanted, int64_t item, const models::TileRules& tiles,
                           ResultMap map) {
  const Request& request = sink.request();
  const Picture& picture = std::get<std::vector<Picture>>(request.input).at(static_cast<size_t>(item));
  const auto at_item = [&](const absl::Status& status) { return AtItem(status, request, "picture", item); };
  if (absl::Status taken = sink.AddDecodedBytes(decoder.CopiedBytes(picture)); !taken.ok()) return taken;
  const auto header = decoder.ReadHeader(picture, wanted);
  if (!header.ok()) return at_item(header.status());
  if (absl::Status fits = CheckMaps(*header, map); !fits.ok()) return at_item(fits);
  if (absl::Status within = CheckRegionFits(request.region, *header); !within.ok()) return at_item(within);
  const models::Size stored = StoredSize(request, *header);
  if (absl::Status fits = CheckPicture(sink, stored, tiles); !fits.ok()) return fits;
  if (absl::Status few = CheckStoredTiles(*header, stored, tiles, decoder.limits()); !few.ok()) return few;
  if (item == 0) {
    const int64_t bucket = BucketId(models::PlacementOf(input, TileSize(stored, tiles)));
    if (absl::Status worth = sink.Consider({bucket}); !worth.ok()) return worth;
  }
  const int64_t inputs =
      std::max(BytesOf(input, stored, tiles, map), BytesOf(input, Turned(stored), tiles, map));
  if (absl::Status taken = sink.AddDecodedBytes(header->copied_bytes + inputs); !taken.ok()) return taken;
  auto made = TilePixels::Open(sink, input, decoder, wanted, picture, *header, TileSize(stored, tiles));
  if (!made.ok()) return at_item(made.status());
  const std::vector<models::Tile> parts = models::TilesOf(made->cut(), tiles);
  int64_t writing = 0;
  for (const models::Tile& tile : parts) {
    if (absl::Status alive = wanted(); !alive.ok()) return alive;
    const auto part = made->Read(tile);
    if (!part.ok()) return at_item(part.status());
    if (absl::Status added = AddTile(sink, input, *part, writing); !added.ok()) return at_item(added);
  }
  sink.AddSent({.width = static_cast<int>(made->whole().width),
                .height = static_cast<int>(made->whole().height),
                .scaled = ScaledSize(input, made->cut(), parts.front()),
                .region = request.region,
                .tiles = parts.size() > 1 ? parts : std::vector<models::Tile>{}});
  return absl::OkStatus();
}

}  // namespace saccade::server
