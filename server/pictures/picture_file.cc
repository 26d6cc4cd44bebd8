#include "server/pictures/picture_file.h"

#include "absl/strings/str_cat.h"
#include "server/pictures/coded_picture.h"
#include "server/pictures/opencv.h"
#include "server/pictures/picture_formats.h"
#include "server/pictures/tiff_picture.h"

namespace saccade::server {
namespace {

absl::StatusOr<cv::Mat> DecodeFormat(std::string_view bytes, const PictureHeader& header, int reduction,
                                     const StillWanted& wanted) {
  switch (header.format) {
    case PictureFormat::kJpeg:
      return DecodeJpeg(bytes, header, reduction, wanted);
    case PictureFormat::kPng:
      return header.copied_bytes > 0 ? DecodePng(WithoutExtraChunks(bytes, header), header, wanted)
                                     : DecodePng(bytes, header, wanted);
    case PictureFormat::kWebp:
      return DecodeWebp(bytes, header, wanted);
    case PictureFormat::kTiff:
      return DecodeTiff(bytes, wanted);
    case PictureFormat::kBmp:
      return DecodeBmp(bytes, wanted);
    case PictureFormat::kRaw:
      break;
  }
  return absl::InternalError("raw pixels are not decoded");
}

}  // namespace

absl::StatusOr<cv::Mat> DecodePictureFile(std::string_view bytes, const PictureHeader& header, int reduction,
                                          const StillWanted& wanted) {
  absl::StatusOr<cv::Mat> pixels = DecodeFormat(bytes, header, reduction, wanted);
  if (!pixels.ok()) return pixels;
  const auto width = static_cast<int>((header.width + reduction - 1) / reduction);
  const auto height = static_cast<int>((header.height + reduction - 1) / reduction);
  const cv::Size size = pixels->size();
  if (pixels->type() == CV_8UC3 && (size == cv::Size(width, height) || size == cv::Size(height, width)))
    return pixels;
  return absl::InvalidArgumentError(absl::StrCat(
      "the ", FormatName(header.format), " picture is damaged: its header claims ", header.width, " x ",
      header.height, " pixels, but its ", bytes.size(), " bytes do not decode to a picture of that size"));
}

absl::StatusOr<cv::Mat> ReadPictureFile(std::string_view bytes, const DecodeLimits& limits) {
  return CatchExceptions("the picture", [&]() -> absl::StatusOr<cv::Mat> {
    const absl::StatusOr<PictureHeader> header = ReadPictureHeader(bytes, limits);
    if (!header.ok()) return header.status();
    if (absl::Status whole = CheckWhole(*header); !whole.ok()) return whole;
    return DecodePictureFile(bytes, *header, 1, nullptr);
  });
}

}  // namespace saccade::server
