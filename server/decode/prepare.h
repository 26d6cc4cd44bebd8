// From a picture as it was sent to a network's input, in the arithmetic that torchvision uses: its header,
// its pixels, and once it is known where they belong (models::Place), the input.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/placement.h"
#include "server/core/request.h"
#include "server/decode/picture_header.h"
#include "server/decode/resample.h"

namespace saccade::server {

// A picture's pixels, upright by its EXIF orientation.
struct DecodedPicture {
  SourcePixels pixels;
  // Keeps `pixels` alive; null where they lie in the picture that was sent.
  std::shared_ptr<const void> owner;
  bool rgb = false;
  // How large the picture is, or the region of it that `pixels` are.
  models::Size sent;
  // How large all of it is.
  models::Size whole;
  // How many of its pixels became one of `pixels` while decoding, along each side.
  int reduction = 1;
};

// What `picture` claims to be, without decoding it. INVALID_ARGUMENT as ReadPictureHeader, and for raw
// pictures whose bytes are not what their size takes. Thread-safe.
absl::StatusOr<PictureHeader> ReadHeader(const Picture& picture, const DecodeLimits& limits);

// Grey becomes three equal channels, 16 bits become 8, CMYK becomes RGB by its complement; transparency and
// colour profiles are ignored (a TIFF's pixels are as if on black). A JPEG at least four times as large as
// `input` needs it is shrunk while it is decoded, which differs by a few 8-bit steps from decoding all of it;
// never where `input` is not antialiased.
//
// With `region` only that part of the upright picture, the very pixels that it would have if it were sent
// alone, and nothing is shrunk. INVALID_ARGUMENT if it reaches beyond the picture.
//
// REQUIRES: `header` was read from `picture`, which outlives the result. Takes its time: call it on the
// decode pool. Thread-safe; throws nothing. INVALID_ARGUMENT for what is damaged; RESOURCE_EXHAUSTED if
// memory ran out.
absl::StatusOr<DecodedPicture> DecodePicture(const Picture& picture, const PictureHeader& header,
                                             const models::ImageInput& input,
                                             const std::optional<Region>& region = std::nullopt);

// Scales `picture` and writes it to `out`, planar [3, bucket height, bucket width], as (value / 255 - mean) /
// std in the model's channel order. With Fit::kCropCentre the shorter side is scaled to `input.short_side`
// and the middle cut out, as torchvision's Resize and CenterCrop do, but not rounded to 8 bits in between.
// With Fit::kKeepRatio it becomes the placement's scaled size, at the top left, and what lies beyond is zero.
//
// REQUIRES: `placement` is models::Place(input, picture.sent), and `out` has exactly that many floats;
// INTERNAL otherwise. Memory is bounded by one row, whatever the picture's shape. Thread-safe; throws
// nothing. RESOURCE_EXHAUSTED if memory ran out.
absl::Status WriteInput(const DecodedPicture& picture, const models::ImageInput& input,
                        const models::Placement& placement, absl::Span<float> out);

}  // namespace saccade::server
