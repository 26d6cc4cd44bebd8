#include "server/engine/cut_parts.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/item_memory.h"

namespace saccade::server {
namespace {

absl::StatusOr<DecodedPicture> DecodeFull(const Picture& picture, const PictureHeader& header,
                                          models::ImageInput input, const Decoder& decoder,
                                          Admission::Ticket& ticket, const StillWanted& wanted) {
  const int64_t bytes = PictureBytes(header.pixels()) + header.copied_bytes;
  if (absl::Status taken = ticket.AddDecodedBytes(bytes); !taken.ok()) return taken;
  input.reduced_jpeg = false;
  return decoder.Decode(picture, header, input, std::nullopt, wanted);
}

RawPicture Copied(const DecodedPicture& picture, const Region& region) {
  const size_t row = 3 * static_cast<size_t>(region.width);
  auto pixels = std::make_shared<std::string>();
  pixels->reserve(row * static_cast<size_t>(region.height));
  for (int y = region.y; y < region.y + region.height; ++y) {
    const uint8_t* const from = picture.pixels.data + static_cast<size_t>(y) * picture.pixels.row_bytes +
                                3 * static_cast<size_t>(region.x);
    pixels->append(reinterpret_cast<const char*>(from), row);
  }
  return {.width = region.width,
          .height = region.height,
          .rgb = picture.rgb,
          .data = {.owner = pixels, .bytes = *pixels}};
}

absl::Status CheckPart(const Region& region, models::Size picture) {
  const bool within = region.x >= 0 && region.y >= 0 && region.width >= 1 && region.height >= 1 &&
                      region.x <= picture.width - region.width && region.y <= picture.height - region.height;
  if (within) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a part of ", region.width, " x ", region.height, " at ", region.x,
                                          ", ", region.y, " is not within the picture of ", picture.width,
                                          " x ", picture.height));
}

// Reads the regions of a picture that is too large to be decoded whole.
absl::StatusOr<std::vector<RawPicture>> ReadParts(const Picture& picture, const PictureHeader& header,
                                                  const std::vector<Region>& regions, const Decoder& decoder,
                                                  Admission::Ticket& ticket, const StillWanted& wanted) {
  const auto opened = decoder.OpenRegions(picture, header, wanted);
  if (!opened.ok()) return opened.status();
  std::vector<RawPicture> parts;
  for (const Region& region : regions) {
    if (absl::Status within = CheckPart(region, {header.height, header.width}); !within.ok()) return within;
    // A part is decoded and then copied.
    const int64_t bytes = 2 * PictureBytes(int64_t{region.width} * region.height);
    if (absl::Status taken = ticket.AddDecodedBytes(bytes); !taken.ok()) return taken;
    const auto part = (*opened)->Read(region);
    if (!part.ok()) return part.status();
    parts.push_back(Copied(*part, {.width = region.width, .height = region.height}));
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::vector<RawPicture>> CutParts(const Picture& picture, const std::vector<Region>& regions,
                                                 const models::ImageInput& input, const Decoder& decoder,
                                                 Admission::Ticket& ticket, const StillWanted& wanted) {
  if (absl::Status taken = ticket.AddDecodedBytes(decoder.CopiedBytes(picture)); !taken.ok()) return taken;
  const auto header = decoder.ReadHeader(picture, wanted);
  if (!header.ok()) return header.status();
  if (header->by_regions) return ReadParts(picture, *header, regions, decoder, ticket, wanted);
  const auto decoded = DecodeFull(picture, *header, input, decoder, ticket, wanted);
  if (!decoded.ok()) return decoded.status();
  std::vector<RawPicture> parts;
  for (const Region& region : regions) {
    if (absl::Status alive = wanted(); !alive.ok()) return alive;
    if (absl::Status within = CheckPart(region, decoded->sent); !within.ok()) return within;
    const int64_t bytes = PictureBytes(int64_t{region.width} * region.height);
    if (absl::Status taken = ticket.AddDecodedBytes(bytes); !taken.ok()) return taken;
    parts.push_back(Copied(*decoded, region));
  }
  return parts;
}

}  // namespace saccade::server
