#include "server/decode/prepare.h"

#include <algorithm>
#include <opencv2/core.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/bad_field.h"
#include "server/pictures/opencv.h"
#include "server/pictures/picture_file.h"
#include "server/pictures/tiff_picture.h"
#include "server/pictures/upright.h"

namespace saccade::server {
namespace {

// Shorter side of the scaled picture, or the longer one if its proportions change before a crop. The larger
// of the values that the picture has upright and turned by 90 degrees.
int64_t NeededSide(const PictureHeader& header, const models::ImageInput& input) {
  if (input.fit == models::Fit::kCropCentre) {
    const models::Size whole = input.before_crop;
    return whole == models::Size{} ? input.short_side : std::max(whole.height, whole.width);
  }
  const models::Size stored = models::PlacementOf(input, {header.height, header.width}).scaled;
  const models::Size turned = models::PlacementOf(input, {header.width, header.height}).scaled;
  return std::max(std::min(stored.height, stored.width), std::min(turned.height, turned.width));
}

// The last column and the last row of a shrunk picture may stand for fewer pixels than the others. Where they
// come first after turning, the picture would lie beside its place by what they lack.
bool StaysInPlace(const PictureHeader& header, int factor) {
  return (header.width % factor == 0 || !StartsWithLastColumn(header.orientation)) &&
         (header.height % factor == 0 || !StartsWithLastRow(header.orientation));
}

// Factor (1, 2, 4 or 8) by which a JPEG can be shrunk during decoding. With antialias, the result stays at
// least twice as large as needed, which keeps the difference to a full decode below the tests' tolerance.
// Without antialias, it stays as large as needed: a full decode would pass over pixels, and the result that
// averages them differs from it in any case.
int Reduction(const PictureHeader& header, const models::ImageInput& input) {
  if (header.format != PictureFormat::kJpeg || !input.reduced_jpeg) return 1;
  const int64_t needed = (input.antialias ? 2 : 1) * NeededSide(header, input);
  const int64_t side = std::min(header.width, header.height);
  for (int factor : {8, 4, 2}) {
    const int64_t width = (header.width + factor - 1) / factor;
    const int64_t height = (header.height + factor - 1) / factor;
    // Decode() detects a rotation by comparing width and height, so they must still differ after shrinking if
    // they did before.
    const bool is_large_enough = side / factor >= needed;
    const bool shows_its_rotation = width != height || header.width == header.height;
    if (is_large_enough && shows_its_rotation && StaysInPlace(header, factor)) return factor;
  }
  return 1;
}

DecodedPicture Owned(std::shared_ptr<const cv::Mat> mat) {
  DecodedPicture picture;
  picture.pixels = {.data = mat->data, .row_bytes = mat->step, .width = mat->cols, .height = mat->rows};
  picture.owner = std::move(mat);
  return picture;
}

absl::StatusOr<DecodedPicture> Decode(std::string_view bytes, const PictureHeader& header, int factor,
                                      const std::function<absl::Status()>& wanted) {
  absl::StatusOr<cv::Mat> decoded = DecodePictureFile(bytes, header, factor, wanted);
  if (!decoded.ok()) return decoded.status();
  const auto mat = std::make_shared<const cv::Mat>(*std::move(decoded));
  DecodedPicture picture = Owned(mat);
  const bool is_turned = mat->rows != (header.height + factor - 1) / factor;
  picture.sent =
      is_turned ? models::Size{header.width, header.height} : models::Size{header.height, header.width};
  picture.reduction = factor;
  return picture;
}

absl::StatusOr<PictureHeader> CheckRaw(const RawPicture& raw, const DecodeLimits& limits) {
  if (raw.width < 1 || raw.height < 1) {
    return absl::InvalidArgumentError(absl::StrCat("the raw picture is ", raw.width, " x ", raw.height,
                                                   " pixels large; both sides have to be at least 1"));
  }
  if (absl::Status fits = CheckPixels(raw.width, raw.height, limits); !fits.ok()) return fits;
  const size_t expected = size_t{3} * raw.width * raw.height;
  if (raw.data.bytes.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the raw picture holds ", raw.data.bytes.size(),
                                                   " bytes; ", raw.width, " x ", raw.height,
                                                   " pixels of 3 bytes take ", expected));
  }
  return PictureHeader{.format = PictureFormat::kRaw, .width = raw.width, .height = raw.height};
}

DecodedPicture Wrap(const RawPicture& raw) {
  DecodedPicture picture;
  picture.pixels = {.data = reinterpret_cast<const uint8_t*>(raw.data.bytes.data()),
                    .row_bytes = size_t{3} * raw.width,
                    .width = raw.width,
                    .height = raw.height};
  picture.rgb = raw.rgb;
  picture.sent = {raw.height, raw.width};
  return picture;
}

// Crops `picture` to `region`. REQUIRES: it was not shrunk during decoding.
absl::Status Cut(const Region& region, DecodedPicture& picture) {
  if (absl::Status within = CheckWithin(region, picture.whole); !within.ok()) return within;
  SourcePixels& pixels = picture.pixels;
  pixels.data += static_cast<size_t>(region.y) * pixels.row_bytes + size_t{3} * static_cast<size_t>(region.x);
  pixels.width = region.width;
  pixels.height = region.height;
  picture.sent = {region.height, region.width};
  return absl::OkStatus();
}

// Sets the pixels of one channel of the bucket that the picture does not cover.
void FillAround(const models::Placement& placement, float value, float* plane) {
  const int64_t row = placement.bucket.width;
  const int64_t end = placement.top + placement.scaled.height;
  std::fill(plane, plane + placement.top * row, value);
  for (int64_t i = placement.top; i < end; ++i) {
    std::fill_n(plane + i * row, placement.left, value);
    std::fill(plane + i * row + placement.left + placement.scaled.width, plane + (i + 1) * row, value);
  }
  std::fill(plane + end * row, plane + placement.bucket.height * row, value);
}

struct Axes {
  Axis x;
  Axis y;
};

Axes AxesOf(const DecodedPicture& picture, const models::ImageInput& input,
            const models::Placement& placement) {
  const models::Size sent = picture.sent;
  const models::Size part = placement.scaled;
  const bool crop = input.fit == models::Fit::kCropCentre;
  const models::Size whole = crop ? models::SizeBeforeCrop(input, sent) : part;
  // Without a crop, the centre is the whole picture.
  Axes axes = {CentreOf(sent.width, whole.width, part.width, input.crop_rounds_down),
               CentreOf(sent.height, whole.height, part.height, input.crop_rounds_down)};
  for (Axis* axis : {&axes.x, &axes.y}) {
    // `scale` was computed for the picture as sent; convert it to the shrunk picture.
    axis->scale /= picture.reduction;
    axis->antialias = input.antialias;
    axis->cubic = input.interpolation == models::Interpolation::kBicubic;
  }
  return axes;
}

void Write(const DecodedPicture& picture, const models::ImageInput& input, const models::Placement& placement,
           float* out) {
  ChannelMap channels;
  for (int c = 0; c < 3; ++c) {
    channels.from[c] = picture.rgb == input.rgb ? c : 2 - c;
    channels.gain[c] = 1 / (255 * input.std[c]);
    channels.bias[c] = -input.mean[c] / input.std[c];
  }
  const size_t row = placement.bucket.width;
  const size_t plane = row * placement.bucket.height;
  const size_t first = placement.top * row + placement.left;
  const Axes axes = AxesOf(picture, input, placement);
  Resample(picture.pixels, axes.x, axes.y, channels, {.data = out + first, .row = row, .plane = plane});
  for (size_t c = 0; c < 3; ++c) {
    const bool letterbox = input.fit == models::Fit::kLetterbox;
    FillAround(placement, letterbox ? channels.gain[c] * input.fill + channels.bias[c] : 0, out + c * plane);
  }
}

}  // namespace

absl::StatusOr<PictureHeader> ReadHeader(const Picture& picture, const DecodeLimits& limits) {
  if (const auto* raw = std::get_if<RawPicture>(&picture)) return CheckRaw(*raw, limits);
  if (const auto* file = std::get_if<EncodedPicture>(&picture))
    return ReadPictureHeader(file->data.bytes, limits);
  return absl::InvalidArgumentError("the input is a volume; expected a picture");
}

int ReductionOf(const PictureHeader& header, const models::ImageInput& input,
                const std::optional<Region>& region) {
  return region ? 1 : Reduction(header, input);
}

absl::StatusOr<DecodedPicture> DecodeWhole(std::string_view bytes, const PictureHeader& header, int reduction,
                                           const std::function<absl::Status()>& wanted) {
  SetUpOpenCv();
  auto decoded = CatchExceptions("the picture", [&] { return Decode(bytes, header, reduction, wanted); });
  if (decoded.ok()) decoded->whole = decoded->sent;
  return decoded;
}

absl::Status CheckWithin(const Region& region, models::Size whole) {
  // Subtracts instead of adding, to avoid overflow.
  if (region.x <= whole.width - region.width && region.y <= whole.height - region.height)
    return absl::OkStatus();
  absl::Status beyond = absl::InvalidArgumentError(absl::StrCat(
      "the region of ", region.width, " x ", region.height, " pixels at ", region.x, ", ", region.y,
      " extends beyond the upright picture, which has ", whole.width, " x ", whole.height, " pixels"));
  SetBadField(beyond, "region");
  return beyond;
}

absl::Status CheckRegion(const Region& region, const PictureHeader& header, const DecodeLimits& limits) {
  if (absl::Status within = CheckWithin(region, {header.height, header.width}); !within.ok()) return within;
  if (int64_t{region.width} <= limits.max_pixels / region.height) return absl::OkStatus();
  absl::Status large = absl::InvalidArgumentError(
      absl::StrCat("the region of ", region.width, " x ", region.height, " pixels is too large; at most ",
                   limits.max_pixels, " pixels are decoded at once, so ask for a smaller one or for tiles"));
  SetBadField(large, "region");
  return large;
}

absl::StatusOr<int64_t> DecodedPixels(const PictureHeader& header, const std::optional<Region>& region,
                                      const DecodeLimits& limits) {
  if (!header.by_regions) return header.pixels();
  absl::Status fits = region ? CheckRegion(*region, header, limits) : CheckWhole(header);
  if (!fits.ok()) return fits;
  return int64_t{region->width} * region->height;
}

absl::StatusOr<DecodedPicture> DecodeRegion(std::string_view bytes, const PictureHeader& header,
                                            const Region& region, const DecodeLimits& limits,
                                            const std::function<absl::Status()>& wanted) {
  if (absl::Status fits = CheckRegion(region, header, limits); !fits.ok()) return fits;
  SetUpOpenCv();
  return CatchExceptions("the picture", [&]() -> absl::StatusOr<DecodedPicture> {
    auto decoded = DecodeTiffRegion(bytes, region, wanted);
    if (!decoded.ok()) return decoded.status();
    DecodedPicture picture = Owned(std::make_shared<const cv::Mat>(*std::move(decoded)));
    picture.sent = {region.height, region.width};
    picture.whole = {header.height, header.width};
    return picture;
  });
}

absl::Status CutRegion(const std::optional<Region>& region, DecodedPicture& picture) {
  return region ? Cut(*region, picture) : absl::OkStatus();
}

absl::StatusOr<DecodedPicture> DecodePicture(const Picture& picture, const PictureHeader& header,
                                             const models::ImageInput& input,
                                             const std::optional<Region>& region,
                                             const std::function<absl::Status()>& wanted) {
  if (absl::Status whole = CheckWhole(header); !whole.ok()) return whole;
  absl::StatusOr<DecodedPicture> decoded;
  if (const auto* raw = std::get_if<RawPicture>(&picture)) {
    decoded = Wrap(*raw);
    decoded->whole = decoded->sent;
  } else {
    decoded = DecodeWhole(std::get<EncodedPicture>(picture).data.bytes, header,
                          ReductionOf(header, input, region), wanted);
  }
  if (!decoded.ok()) return decoded;
  if (absl::Status cut = CutRegion(region, *decoded); !cut.ok()) return cut;
  return decoded;
}

int64_t WriteInputBytes(const DecodedPicture& picture, const models::ImageInput& input,
                        const models::Placement& placement) {
  const Axes axes = AxesOf(picture, input, placement);
  return ResampleBytes(picture.pixels.width, picture.pixels.height, axes.x, axes.y);
}

absl::Status WriteInput(const DecodedPicture& picture, const models::ImageInput& input,
                        const models::Placement& placement, absl::Span<float> out) {
  const models::Size bucket = placement.bucket;
  if (static_cast<int64_t>(out.size()) != 3 * bucket.height * bucket.width ||
      placement.sent != picture.sent || placement.top + placement.scaled.height > bucket.height ||
      placement.left + placement.scaled.width > bucket.width) {
    return absl::InternalError(absl::StrCat("the output buffer of ", out.size(),
                                            " floats or the placement does not match the picture of ",
                                            picture.sent.width, " x ", picture.sent.height,
                                            " in a bucket of ", bucket.width, " x ", bucket.height));
  }
  return CatchExceptions("the picture", [&] {
    Write(picture, input, placement, out.data());
    return absl::OkStatus();
  });
}

}  // namespace saccade::server
