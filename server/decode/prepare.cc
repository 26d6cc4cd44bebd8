#include "server/decode/prepare.h"

#include <algorithm>
#include <exception>
#include <new>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/decode/resample.h"

namespace saccade::server {
namespace {

// Decoded and upright, perhaps smaller than it was sent.
struct Pixels {
  cv::Mat bgr_or_rgb;
  bool rgb = false;
  // As sent, upright.
  PictureSize size;
  // How many pixels of a side became one while decoding.
  int reduction = 1;
};

struct Scaled {
  int64_t width = 0;
  int64_t height = 0;
};

// What the whole picture is scaled to, rounded as torchvision.transforms.Resize does.
Scaled ScaledSize(int64_t width, int64_t height, const models::ImageInput& input) {
  if (!input.center_crop) return {input.width, input.height};
  const int64_t side = input.resize_short_side;
  if (width <= height) return {side, side * height / width};
  return {side * width / height, side};
}

// How far a JPEG can be shrunk by 2, 4 or 8 while it is decoded: it has to stay twice as large as it is
// needed, which keeps the difference to decoding all of it below what the tests allow.
int Reduction(const PictureHeader& header, const models::ImageInput& input) {
  if (header.format != PictureFormat::kJpeg) return 1;
  const Scaled scaled = ScaledSize(header.width, header.height, input);
  // The orientation is not known yet; without a crop it decides which side is which.
  const int64_t needed =
      2 * (input.center_crop ? std::min(scaled.width, scaled.height) : std::max(scaled.width, scaled.height));
  const int64_t side = std::min(header.width, header.height);
  for (int factor : {8, 4, 2}) {
    const int64_t width = (header.width + factor - 1) / factor;
    const int64_t height = (header.height + factor - 1) / factor;
    // Only by its size is a picture known to be turned.
    if (side / factor >= needed && (width != height || header.width == header.height)) return factor;
  }
  return 1;
}

int ReadMode(int reduction) {
  switch (reduction) {
    case 8:
      return cv::IMREAD_REDUCED_COLOR_8;
    case 4:
      return cv::IMREAD_REDUCED_COLOR_4;
    case 2:
      return cv::IMREAD_REDUCED_COLOR_2;
    default:
      return cv::IMREAD_COLOR;
  }
}

absl::Status Damaged(const PictureHeader& header, size_t bytes) {
  return absl::InvalidArgumentError(absl::StrCat("the ", FormatName(header.format),
                                                 " picture is damaged: its header "
                                                 "claims ",
                                                 header.width, " x ", header.height, " pixels, but its ",
                                                 bytes, " bytes do not decode to them"));
}

absl::StatusOr<Pixels> Decode(std::string_view bytes, const models::ImageInput& input,
                              const DecodeLimits& limits) {
  const absl::StatusOr<PictureHeader> header = ReadPictureHeader(bytes, limits);
  if (!header.ok()) return header.status();
  const int factor = Reduction(*header, input);
  // OpenCV reads from the buffer and does not write to it, but cannot say so.
  const cv::Mat encoded(1, static_cast<int>(bytes.size()), CV_8UC1, const_cast<char*>(bytes.data()));
  Pixels pixels;
  pixels.reduction = factor;
  pixels.bgr_or_rgb = cv::imdecode(encoded, ReadMode(factor));
  const cv::Mat& mat = pixels.bgr_or_rgb;
  if (mat.empty() || mat.type() != CV_8UC3) return Damaged(*header, bytes.size());
  const int width = static_cast<int>(header->width);
  const int height = static_cast<int>(header->height);
  const cv::Size expected((width + factor - 1) / factor, (height + factor - 1) / factor);
  if (mat.size() == expected) {
    pixels.size = {width, height};
  } else if (mat.size() == cv::Size(expected.height, expected.width)) {
    pixels.size = {height, width};
  } else {
    return Damaged(*header, bytes.size());
  }
  return pixels;
}

absl::StatusOr<Pixels> Wrap(const RawPicture& raw, const DecodeLimits& limits) {
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
  Pixels pixels;
  pixels.bgr_or_rgb = cv::Mat(raw.height, raw.width, CV_8UC3, const_cast<char*>(raw.data.bytes.data()));
  pixels.rgb = raw.rgb;
  pixels.size = {raw.width, raw.height};
  return pixels;
}

void Write(const Pixels& pixels, const models::ImageInput& input, float* out) {
  const cv::Mat& mat = pixels.bgr_or_rgb;
  const Scaled scaled = ScaledSize(pixels.size.width, pixels.size.height, input);
  Axis x = CentreOf(pixels.size.width, scaled.width, input.width);
  Axis y = CentreOf(pixels.size.height, scaled.height, input.height);
  // The output lies on the picture as it was sent.
  x.scale /= pixels.reduction;
  y.scale /= pixels.reduction;
  ChannelMap channels;
  for (int c = 0; c < 3; ++c) {
    channels.from[c] = pixels.rgb == input.rgb ? c : 2 - c;
    channels.gain[c] = 1 / (255 * input.std[c]);
    channels.bias[c] = -input.mean[c] / input.std[c];
  }
  Resample({.data = mat.data, .row_bytes = mat.step, .width = mat.cols, .height = mat.rows}, x, y, channels,
           out);
}

// Process-wide settings of OpenCV, made before its first use here.
void SetUpOpenCv() {
  static const bool once = [] {
    // The pool's threads are all there should be.
    cv::setNumThreads(0);
    // Errors are answered to the client; by default OpenCV would print each of them as well.
    cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
    return true;
  }();
  static_cast<void>(once);
}

absl::StatusOr<PictureSize> PrepareOrThrow(const Picture& picture, const models::ImageInput& input,
                                           const DecodeLimits& limits, absl::Span<float> out) {
  const auto* encoded = std::get_if<EncodedPicture>(&picture);
  const absl::StatusOr<Pixels> pixels = encoded != nullptr ? Decode(encoded->data.bytes, input, limits)
                                                           : Wrap(std::get<RawPicture>(picture), limits);
  if (!pixels.ok()) return pixels.status();
  Write(*pixels, input, out.data());
  return pixels->size;
}

}  // namespace

absl::StatusOr<PictureSize> Prepare(const Picture& picture, const models::ImageInput& input,
                                    const DecodeLimits& limits, absl::Span<float> out) {
  const int64_t expected = 3 * input.height * input.width;
  if (input.height < 1 || input.width < 1 || (input.center_crop && input.resize_short_side < 1) ||
      static_cast<int64_t>(out.size()) != expected) {
    return absl::InternalError(absl::StrCat("room for ", out.size(), " floats was given to a picture of ",
                                            input.width, " x ", input.height, ", short side ",
                                            input.resize_short_side));
  }
  SetUpOpenCv();
  const auto out_of_memory = [] {
    return absl::ResourceExhaustedError(
        "out of memory while decoding a picture; try again later or send a smaller one");
  };
  try {
    return PrepareOrThrow(picture, input, limits, out);
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) return out_of_memory();
    return absl::InvalidArgumentError(absl::StrCat("the picture cannot be decoded: ", error.err));
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("the picture cannot be decoded: ", error.what()));
  }
}

}  // namespace saccade::server
