#include "server/pictures/tiff_picture.h"

#include <tiffio.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/pictures/picture_formats.h"
#include "server/pictures/tiff_file.h"
#include "server/pictures/upright.h"

namespace saccade::server {
namespace {

static_assert(std::endian::native == std::endian::little,
              "libtiff's pixels are words, red in the lowest byte");

bool IsTurned(const TiffPicture& picture) { return picture.orientation >= ORIENTATION_LEFTTOP; }

// The header of a picture that is too large to be decoded whole.
absl::StatusOr<PictureHeader> RegionalHeader(const TiffFile& file, const TiffPicture& picture,
                                             const DecodeLimits& limits) {
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("the picture is ", picture.width, " x ", picture.height,
                                                   " pixels large; at most ", limits.max_pixels,
                                                   " pixels are decoded at once, and ", why));
  };
  if (absl::Status regions = file.CheckRegions(); !regions.ok()) return refused(regions.message());
  if (std::max(picture.width, picture.height) > kMaxRegionalSide)
    return refused(absl::StrCat("sides of at most ", kMaxRegionalSide, " are read by regions"));
  const bool turned = IsTurned(picture);
  const auto [tile_width, tile_height] = file.TileSize();
  return PictureHeader{.format = PictureFormat::kTiff,
                       .width = turned ? picture.height : picture.width,
                       .height = turned ? picture.width : picture.height,
                       .by_regions = true,
                       .tile_width = turned ? tile_height : tile_width,
                       .tile_height = turned ? tile_width : tile_height};
}

// Where a region of the upright picture lies in the picture as stored.
Region StoredRegion(const TiffPicture& picture, const Region& upright) {
  Region stored = upright;
  if (IsTurned(picture)) {
    std::swap(stored.x, stored.y);
    std::swap(stored.width, stored.height);
  }
  const auto width = static_cast<int>(picture.width);
  const auto height = static_cast<int>(picture.height);
  const bool right =
      picture.orientation == ORIENTATION_TOPRIGHT || picture.orientation == ORIENTATION_BOTRIGHT ||
      picture.orientation == ORIENTATION_RIGHTBOT || picture.orientation == ORIENTATION_LEFTBOT;
  const bool bottom =
      picture.orientation == ORIENTATION_BOTRIGHT || picture.orientation == ORIENTATION_BOTLEFT ||
      picture.orientation == ORIENTATION_RIGHTTOP || picture.orientation == ORIENTATION_RIGHTBOT;
  if (right) stored.x = width - stored.x - stored.width;
  if (bottom) stored.y = height - stored.y - stored.height;
  return stored;
}

// Red, green, blue and alpha as 8-bit BGR, upright. `rgba` is freed.
cv::Mat UprightBgr(cv::Mat rgba, int orientation) {
  cv::Mat upright(rgba.size(), CV_8UC3);
  constexpr std::array<int, 6> kRedLast = {0, 2, 1, 1, 2, 0};
  cv::mixChannels(&rgba, 1, &upright, 1, kRedLast.data(), kRedLast.size() / 2);
  rgba.release();
  TurnUpright(upright, orientation);
  return upright;
}

}  // namespace

absl::StatusOr<PictureHeader> ReadTiffHeader(std::string_view encoded, const DecodeLimits& limits) {
  auto file = TiffFile::Open(encoded, /*max_pages=*/1);
  if (!file.ok()) return file.status();
  auto picture = (*file)->Picture();
  if (!picture.ok()) return picture.status();
  if (absl::Status fits = CheckPixels(picture->width, picture->height, limits); !fits.ok())
    return RegionalHeader(**file, *picture, limits);
  if (const int64_t stored = (*file)->StoredPixels(); stored > MaxStoredPixels(limits.max_pixels)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the TIFF cannot be read: its tiles have ", stored, " pixels together; at most ",
                     MaxStoredPixels(limits.max_pixels),
                     " are accepted, so save it again with smaller tiles or with strips"));
  }
  if (absl::Status own = (*file)->CountStoredBytes(); !own.ok()) return own;
  return PictureHeader{.format = PictureFormat::kTiff, .width = picture->width, .height = picture->height};
}

absl::StatusOr<cv::Mat> DecodeTiff(std::string_view bytes, const std::function<absl::Status()>& wanted) {
  auto file = TiffFile::Open(bytes, /*max_pages=*/1, wanted);
  if (!file.ok()) return file.status();
  auto picture = (*file)->Picture();
  if (!picture.ok()) return picture.status();
  cv::Mat rgba(static_cast<int>(picture->height), static_cast<int>(picture->width), CV_8UC4);
  absl::Status read = (*file)->ReadPicture(*picture, reinterpret_cast<uint32_t*>(rgba.data));
  if (!read.ok()) return read;
  return UprightBgr(std::move(rgba), picture->orientation);
}

absl::StatusOr<cv::Mat> DecodeTiffRegion(std::string_view bytes, const Region& region,
                                         const std::function<absl::Status()>& wanted) {
  auto file = TiffFile::Open(bytes, /*max_pages=*/1, wanted);
  if (!file.ok()) return file.status();
  auto picture = (*file)->Picture();
  if (!picture.ok()) return picture.status();
  if (absl::Status regions = (*file)->CheckRegions(); !regions.ok()) return regions;
  const Region stored = StoredRegion(*picture, region);
  const bool within = stored.x >= 0 && stored.y >= 0 && stored.width >= 1 && stored.height >= 1 &&
                      stored.x <= picture->width - stored.width &&
                      stored.y <= picture->height - stored.height;
  if (!within) return absl::InvalidArgumentError("the region is not within the TIFF");
  cv::Mat rgba(stored.height, stored.width, CV_8UC4);
  absl::Status read = (*file)->ReadRegion(*picture, stored, reinterpret_cast<uint32_t*>(rgba.data));
  if (!read.ok()) return read;
  return UprightBgr(std::move(rgba), picture->orientation);
}

}  // namespace saccade::server
