#include "server/protocols/vision/masks.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "server/encode/mask.h"
#include "server/pictures/png.h"
#include "server/protocols/vision/errors.h"

namespace saccade::server {
namespace {

absl::Status SetRle(const models::MaskRegion& region, models::Size whole, float threshold,
                    v1::RleMask* message) {
  // A run may be as long as the picture.
  if (whole.height > std::numeric_limits<uint32_t>::max() / whole.width) {
    return InvalidField("detection.masks",
                        absl::StrCat("is RLE, whose runs have at most ", std::numeric_limits<uint32_t>::max(),
                                     " pixels, but the picture is ", whole.width, " x ", whole.height,
                                     "; ask for PNG, POLYGONS or NONE"));
  }
  const std::vector<uint32_t> counts = models::EncodeRle(region, whole.height, whole.width, threshold);
  message->set_height(static_cast<int32_t>(whole.height));
  message->set_width(static_cast<int32_t>(whole.width));
  message->set_counts(models::CocoText(counts));
  message->set_area(models::AreaOf(counts));
  return absl::OkStatus();
}

absl::Status SetPicture(const MaskBits& bits, const StillWanted& wanted, v1::MaskPicture* message) {
  message->set_area(bits.area);
  if (bits.values.empty()) return absl::OkStatus();
  auto png = GreyPng(bits.values.data(), bits.height, bits.width, wanted);
  if (!png.ok()) return png.status();
  message->set_x(static_cast<int32_t>(bits.x));
  message->set_y(static_cast<int32_t>(bits.y));
  message->set_width(static_cast<int32_t>(bits.width));
  message->set_height(static_cast<int32_t>(bits.height));
  message->set_png(*std::move(png));
  return absl::OkStatus();
}

absl::Status SetPolygons(const MaskBits& bits, v1::MaskPolygons* message) {
  const auto polygons = PolygonsOf(bits);
  if (!polygons.ok()) return polygons.status();
  message->set_area(bits.area);
  for (const MaskPolygon& polygon : *polygons) {
    v1::MaskPolygons::Polygon* const out = message->add_polygons();
    out->mutable_points()->Add(polygon.points.begin(), polygon.points.end());
    out->set_hole(polygon.hole);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SetMask(const models::MaskRegion& region, models::Size whole, v1::DetectionOptions::Masks form,
                     float threshold, const StillWanted& wanted, v1::Detection* message) {
  switch (form) {
    case v1::DetectionOptions::PNG:
      return SetPicture(BitsOf(region, threshold), wanted, message->mutable_mask_picture());
    case v1::DetectionOptions::POLYGONS:
      return SetPolygons(BitsOf(region, threshold), message->mutable_mask_polygons());
    default:
      return SetRle(region, whole, threshold, message->mutable_mask());
  }
}

}  // namespace saccade::server
