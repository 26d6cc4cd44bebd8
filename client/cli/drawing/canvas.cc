#include "client/cli/drawing/canvas.h"

#include <algorithm>
#include <fstream>
#include <opencv2/imgproc.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/drawing/typeface.h"
#include "server/pictures/picture_file.h"
#include "server/pictures/png.h"

namespace saccade::client {
namespace {

// Narrower pictures are enlarged to this width, up to this height.
constexpr int kMinCanvasWidth = 360;
constexpr int kMaxEnlargedHeight = 1440;
// Longer texts do not fit into any drawing, and measuring them takes long.
constexpr size_t kMaxTextLength = 200;

}  // namespace

absl::StatusOr<cv::Mat> DecodePicture(absl::string_view picture, const Answer& answer) {
  // What the daemon accepted may be larger than what it accepts by default.
  const server::DecodeLimits limits{.max_pixels = int64_t{1} << 30, .max_bytes = int64_t{1} << 40};
  absl::StatusOr<cv::Mat> decoded = server::ReadPictureFile({picture.data(), picture.size()}, limits);
  if (!decoded.ok()) return decoded;
  if (decoded->cols != answer.picture_width || decoded->rows != answer.picture_height) {
    return absl::InternalError(absl::StrCat("the picture is ", decoded->cols, "x", decoded->rows,
                                            " pixels large; the daemon reports ", answer.picture_width, "x",
                                            answer.picture_height));
  }
  return decoded;
}

double Enlargement(cv::Size size) {
  return std::max(1.0, std::min(static_cast<double>(kMinCanvasWidth) / size.width,
                                static_cast<double>(kMaxEnlargedHeight) / size.height));
}

cv::Mat AddPanel(const cv::Mat& picture, int height) {
  cv::Mat result;
  cv::copyMakeBorder(picture, result, 0, height, 0, std::max(0, kMinCanvasWidth - picture.cols),
                     cv::BORDER_CONSTANT, kPanel);
  return result;
}

Font::Font(double height) : height_(std::max(1, cvRound(height))) {}

int Font::WidthOf(const std::string& text) const { return WidthOfText(CharactersOf(text), height_); }

std::string Font::Fit(const std::string& text, int width) const {
  std::string fitting = text.substr(0, kMaxTextLength);
  if (fitting.size() == text.size() && WidthOf(fitting) <= width) return fitting;
  // Whole characters are cut: those behind the first byte of a character begin with the bits 10.
  const auto cut = [&fitting] {
    while (!fitting.empty() && (static_cast<unsigned char>(fitting.back()) & 0xC0) == 0x80)
      fitting.pop_back();
    if (!fitting.empty()) fitting.pop_back();
  };
  if (fitting.size() < text.size()) cut();
  while (!fitting.empty() && WidthOf(fitting + "...") > width) cut();
  return fitting + "...";
}

void Font::Write(cv::Mat& canvas, const std::string& text, cv::Point at, const cv::Scalar& color) const {
  DrawText(canvas, CharactersOf(text), height_, at, color);
}

std::string Title(const std::string& label, int64_t index) {
  return label.empty() ? absl::StrCat("class ", index) : label;
}

absl::Status SaveDrawing(const std::string& path, const std::function<absl::StatusOr<cv::Mat>()>& draw) {
  try {
    const absl::StatusOr<cv::Mat> drawing = draw();
    if (!drawing.ok()) return drawing.status();
    const absl::StatusOr<std::string> png = server::PngOf(*drawing);
    if (!png.ok()) return png.status();
    std::ofstream file(path, std::ios::binary);
    if (file.write(png->data(), static_cast<std::streamsize>(png->size())).flush()) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("could not write ", path));
  } catch (const TypefaceError& error) {
    return absl::InvalidArgumentError(error.what());
  } catch (const cv::Exception& error) {
    return absl::InternalError(absl::StrCat("OpenCV: ", error.what()));
  }
}

}  // namespace saccade::client
