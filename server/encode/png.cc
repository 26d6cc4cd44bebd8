#include "server/encode/png.h"

#include <exception>
#include <new>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <vector>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

absl::StatusOr<std::string> Png(int type, const void* pixels, int64_t height, int64_t width) {
  const auto out_of_memory = [&] {
    return absl::ResourceExhaustedError(absl::StrCat("out of memory while encoding ", width, " x ", height,
                                                     " pixels as PNG; try again later or send a smaller "
                                                     "picture"));
  };
  try {
    // OpenCV reads from the pixels and does not write to them, but its interface is not const-correct.
    const cv::Mat grey(static_cast<int>(height), static_cast<int>(width), type, const_cast<void*>(pixels));
    std::vector<uint8_t> png;
    if (!cv::imencode(".png", grey, png)) {
      return absl::InternalError(absl::StrCat(width, " x ", height, " pixels could not be encoded as PNG"));
    }
    return std::string(png.begin(), png.end());
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) return out_of_memory();
    return absl::InternalError(
        absl::StrCat(width, " x ", height, " pixels could not be encoded as PNG: ", error.err));
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    return absl::InternalError(
        absl::StrCat(width, " x ", height, " pixels could not be encoded as PNG: ", error.what()));
  }
}

}  // namespace

absl::StatusOr<std::string> GreyPng(const uint8_t* pixels, int64_t height, int64_t width) {
  return Png(CV_8UC1, pixels, height, width);
}

absl::StatusOr<std::string> GreyPng(const uint16_t* pixels, int64_t height, int64_t width) {
  return Png(CV_16UC1, pixels, height, width);
}

}  // namespace saccade::server
