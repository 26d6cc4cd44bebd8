#include <webp/decode.h>

#include <algorithm>
#include <memory>
#include <new>

#include "server/pictures/coded_picture.h"
#include "server/pictures/picture_formats.h"
#include "server/pictures/upright.h"

namespace saccade::server {
namespace {

// The pixels that are decoded before it is asked whether they are still wanted, if the file has the same
// number of bytes for all of them.
constexpr int64_t kWebpPixelsAtOnce = int64_t{1} << 18;

absl::Status DamagedWebp() {
  return absl::InvalidArgumentError("the WebP picture is damaged: its pixels cannot be decoded");
}

}  // namespace

absl::StatusOr<cv::Mat> DecodeWebp(std::string_view bytes, const PictureHeader& header,
                                   const StillWanted& wanted) {
  cv::Mat picture(static_cast<int>(header.height), static_cast<int>(header.width), CV_8UC3);
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return absl::InternalError("libwebp is of another version");
  config.output.colorspace = MODE_BGR;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {.rgba = picture.data,
                          .stride = static_cast<int>(picture.step),
                          .size = picture.step * static_cast<size_t>(picture.rows)};
  std::unique_ptr<WebPIDecoder, decltype(&WebPIDelete)> decoder(WebPIDecode(nullptr, 0, &config),
                                                                WebPIDelete);
  if (decoder == nullptr) throw std::bad_alloc();
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  const size_t pieces = static_cast<size_t>(header.pixels() / kWebpPixelsAtOnce) + 1;
  const size_t piece = std::max<size_t>(1, bytes.size() / pieces);
  for (size_t size = piece;; size = std::min(bytes.size(), size + piece)) {
    if (absl::Status goes_on = wanted ? wanted() : absl::OkStatus(); !goes_on.ok()) return goes_on;
    switch (WebPIUpdate(decoder.get(), data, size)) {
      case VP8_STATUS_OK:
        // Turning takes as much memory as the picture, and the decoder has more.
        decoder.reset();
        TurnUpright(picture, ExifOrientation(WebpExif(bytes)));
        return picture;
      case VP8_STATUS_SUSPENDED:
        if (size == bytes.size()) return DamagedWebp();
        break;
      case VP8_STATUS_OUT_OF_MEMORY:
        throw std::bad_alloc();
      default:
        return DamagedWebp();
    }
  }
}

}  // namespace saccade::server
