#include "server/decode/tiff_picture.h"

#include <array>
#include <bit>

#include "absl/strings/str_cat.h"
#include "server/decode/picture_formats.h"
#include "server/decode/tiff_file.h"

namespace saccade::server {
namespace {

static_assert(std::endian::native == std::endian::little,
              "libtiff's pixels are words, red in the lowest byte");

void TurnUpright(cv::Mat& picture, int orientation) {
  if (orientation >= 5) cv::transpose(picture, picture);
  switch (orientation) {
    case 2:
    case 6:
      cv::flip(picture, picture, 1);
      return;
    case 3:
    case 7:
      cv::flip(picture, picture, -1);
      return;
    case 4:
    case 8:
      cv::flip(picture, picture, 0);
      return;
    default:
      return;
  }
}

}  // namespace

absl::StatusOr<PictureHeader> ReadTiffHeader(std::string_view encoded, const DecodeLimits& limits) {
  auto file = TiffFile::Open(encoded, /*max_pages=*/1);
  if (!file.ok()) return file.status();
  auto picture = (*file)->Picture();
  if (!picture.ok()) return picture.status();
  if (absl::Status fits = CheckPixels(picture->width, picture->height, limits); !fits.ok()) return fits;
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
  cv::Mat upright(rgba.size(), CV_8UC3);
  constexpr std::array<int, 6> kRedLast = {0, 2, 1, 1, 2, 0};
  cv::mixChannels(&rgba, 1, &upright, 1, kRedLast.data(), kRedLast.size() / 2);
  rgba.release();
  TurnUpright(upright, picture->orientation);
  return upright;
}

}  // namespace saccade::server
