// Turns a picture as sent into network input, with the arithmetic of torchvision, in three steps: read the
// header, decode the pixels, and write the input once the placement (models::PlacementOf) is known.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/api/placement.h"
#include "server/core/request.h"
#include "server/decode/resample.h"
#include "server/pictures/picture_header.h"

namespace saccade::server {

// A decoded picture, rotated upright according to its EXIF orientation.
struct DecodedPicture {
  SourcePixels pixels;
  // Keeps `pixels` alive; null if they point into the picture that was sent.
  std::shared_ptr<const void> owner;
  bool rgb = false;
  // Size of the picture, or of the region that `pixels` shows, before any reduction.
  models::Size sent;
  // Size of the whole picture.
  models::Size whole;
  // Factor by which each side was shrunk during decoding.
  int reduction = 1;
};

// Reads what `picture` claims to be, without decoding it. INVALID_ARGUMENT as for ReadPictureHeader, and for
// raw pictures whose number of bytes does not match their size. Thread-safe.
absl::StatusOr<PictureHeader> ReadHeader(const Picture& picture, const DecodeLimits& limits);

// Decodes `picture` to 8-bit RGB or BGR. Grey becomes three equal channels, 16 bits become 8, CMYK becomes
// RGB by its complement; transparency and colour profiles are ignored (a TIFF is blended with black). If
// `input` allows it (reduced_jpeg), a JPEG at least four times as large as `input` needs is shrunk during
// decoding, which differs from a full decode by a few 8-bit steps; without antialias, one at least twice as
// large, which differs by as much as pixels differ from their neighbours.
//
// With `region`, returns only that part of the upright picture, with exactly the pixels of the whole picture
// and without shrinking. INVALID_ARGUMENT if the region extends beyond the picture.
//
// `wanted`, if not null, is asked between the strips or tiles of a TIFF and the rows of other formats, and
// its error ends decoding.
//
// INVALID_ARGUMENT for a picture that is read by regions.
//
// REQUIRES: `header` was read from `picture`, which outlives the result. Slow: call it on the decode pool.
// Thread-safe; does not throw. INVALID_ARGUMENT if the data is damaged; RESOURCE_EXHAUSTED if out of memory.
absl::StatusOr<DecodedPicture> DecodePicture(const Picture& picture, const PictureHeader& header,
                                             const models::ImageInput& input,
                                             const std::optional<Region>& region = std::nullopt,
                                             const std::function<absl::Status()>& wanted = nullptr);

// The steps of DecodePicture() for an encoded picture, of which the second may run in another process.
// The factor by which the picture is shrunk during decoding; 1 with a region.
int ReductionOf(const PictureHeader& header, const models::ImageInput& input,
                const std::optional<Region>& region);
// Decodes all of an encoded picture, shrunk by `reduction`.
absl::StatusOr<DecodedPicture> DecodeWhole(std::string_view bytes, const PictureHeader& header, int reduction,
                                           const std::function<absl::Status()>& wanted = nullptr);
// Decodes a region of a picture whose header has `by_regions`, and nothing else. INVALID_ARGUMENT if the
// region extends beyond the picture or is itself too large, as for CheckPixels(). `wanted` as above, between
// tiles.
absl::StatusOr<DecodedPicture> DecodeRegion(std::string_view bytes, const PictureHeader& header,
                                            const Region& region, const DecodeLimits& limits,
                                            const std::function<absl::Status()>& wanted = nullptr);
// INVALID_ARGUMENT, as DecodeRegion() returns it.
absl::Status CheckRegion(const Region& region, const PictureHeader& header, const DecodeLimits& limits);
// INVALID_ARGUMENT if the region extends beyond a picture of size `whole`.
absl::Status CheckWithin(const Region& region, models::Size whole);
// Returns the number of pixels that decoding a picture or its region takes: those of the region if the header
// has `by_regions`, otherwise of the whole picture. INVALID_ARGUMENT, as CheckWhole() and CheckRegion().
absl::StatusOr<int64_t> DecodedPixels(const PictureHeader& header, const std::optional<Region>& region,
                                      const DecodeLimits& limits);
// Cuts `region` out of a whole picture.
absl::Status CutRegion(const std::optional<Region>& region, DecodedPicture& picture);

// Scales `picture` and writes it to `out`, planar [3, bucket height, bucket width], as (value / 255 - mean) /
// std in the model's channel order. Fit::kCropCentre scales to SizeBeforeCrop() and cuts out the centre, like
// torchvision's Resize and CenterCrop but without rounding to 8 bits in between.
// Fit::kKeepRatio scales to the placement's scaled size, at the top left; the rest of the bucket is zero.
// Fit::kExact scales to the bucket. Fit::kLetterbox surrounds the scaled picture with `input.fill`.
//
// REQUIRES: `placement` is models::PlacementOf(input, picture.sent), and `out` has exactly the bucket's
// number of floats; INTERNAL otherwise. Allocates WriteInputBytes() while it runs. Thread-safe; does not
// throw. RESOURCE_EXHAUSTED if out of memory.
absl::Status WriteInput(const DecodedPicture& picture, const models::ImageInput& input,
                        const models::Placement& placement, absl::Span<float> out);
// Grows with the picture's sides, not with its pixels.
int64_t WriteInputBytes(const DecodedPicture& picture, const models::ImageInput& input,
                        const models::Placement& placement);

}  // namespace saccade::server
