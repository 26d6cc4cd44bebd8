#include "server/quantize/truth_png.h"

#include "absl/strings/str_cat.h"
#include "server/pictures/coded_picture.h"
#include "server/pictures/picture_header.h"
#include "server/quantize/bounded_file.h"
#include "server/quantize/mask_file.h"

namespace saccade::server {

absl::Status CheckTruthSize(const std::string& path, int64_t height, int64_t width, int64_t picture_height,
                            int64_t picture_width) {
  if (height == picture_height && width == picture_width) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": has ", width, " x ", height, " pixels, and its picture has ", picture_width,
                   " x ", picture_height,
                   "; expected labels of the picture's size, as it is shown upright. Scale neither alone"));
}

absl::StatusOr<PngNumbers> ReadTruthPng(const std::string& path, int64_t height, int64_t width) {
  const auto named = [&](const absl::Status& status) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ", status.message(), "; expected a PNG with one channel, grey or with a palette"));
  };
  const auto content = ReadBoundedFile(path, kMaxTruthFileBytes);
  if (!content.ok()) return content.status();
  const auto header = ReadPictureHeader(*content, DecodeLimits());
  if (!header.ok()) return named(header.status());
  if (absl::Status size = CheckTruthSize(path, header->height, header->width, height, width); !size.ok())
    return size;
  const auto read = ReadPngNumbers(*content, width, height);
  if (!read.ok()) return named(read.status());
  PngNumbers numbers = {.bits = read->elemSize() == 2 ? 16 : 8, .values = {}};
  numbers.values.reserve(static_cast<size_t>(height * width));
  for (int y = 0; y < read->rows; ++y) {
    for (int x = 0; x < read->cols; ++x)
      numbers.values.push_back(numbers.bits == 16 ? read->at<uint16_t>(y, x) : read->at<uint8_t>(y, x));
  }
  return numbers;
}

}  // namespace saccade::server
