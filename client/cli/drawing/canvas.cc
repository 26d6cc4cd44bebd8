#include "client/cli/drawing/canvas.h"

#include <algorithm>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

// Narrower pictures are enlarged to this width, up to this height.
constexpr int kMinCanvasWidth = 360;
constexpr int kMaxEnlargedHeight = 1440;
constexpr int kFont = cv::FONT_HERSHEY_DUPLEX;
// Height of the font's capitals at scale 1, in pixels.
constexpr double kCapitalHeight = 21;

// Longer texts do not fit into any drawing, and measuring them takes long.
constexpr size_t kMaxTextLength = 200;

std::string Ascii(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) continue;
    result += byte >= 0x20 && byte < 0x7F ? c : '?';
  }
  return result;
}

}  // namespace

absl::StatusOr<cv::Mat> DecodePicture(absl::string_view picture, const Answer& answer) {
  const cv::Mat bytes(1, static_cast<int>(picture.size()), CV_8UC1, const_cast<char*>(picture.data()));
  const cv::Mat decoded = bytes.empty() ? cv::Mat() : cv::imdecode(bytes, cv::IMREAD_COLOR);
  if (decoded.empty()) return absl::InvalidArgumentError("this OpenCV cannot decode the picture");
  if (decoded.cols != answer.picture_width || decoded.rows != answer.picture_height) {
    return absl::InternalError(absl::StrCat("this OpenCV decodes the picture to ", decoded.cols, "x",
                                            decoded.rows, "; the daemon reports ", answer.picture_width, "x",
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

Font::Font(double height)
    : height_(cvRound(height)),
      scale_(height / kCapitalHeight),
      thickness_(std::max(1, cvRound(height / 12))) {}

int Font::WidthOf(const std::string& text) const {
  int baseline = 0;
  return cv::getTextSize(text, kFont, scale_, thickness_, &baseline).width;
}

std::string Font::Fit(const std::string& text, int width) const {
  std::string fitting = Ascii(text.substr(0, kMaxTextLength));
  if (WidthOf(fitting) <= width) return fitting;
  while (!fitting.empty() && WidthOf(fitting + "...") > width) fitting.pop_back();
  return fitting + "...";
}

void Font::Write(cv::Mat& canvas, const std::string& text, cv::Point at, const cv::Scalar& color) const {
  cv::putText(canvas, text, at, kFont, scale_, color, thickness_, cv::LINE_AA);
}

std::string Title(const std::string& label, int64_t index) {
  return label.empty() ? absl::StrCat("class ", index) : label;
}

absl::Status SaveDrawing(const std::string& path, const std::function<absl::StatusOr<cv::Mat>()>& draw) {
  try {
    const absl::StatusOr<cv::Mat> drawing = draw();
    if (!drawing.ok()) return drawing.status();
    if (cv::imwrite(path, *drawing)) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("could not write ", path));
  } catch (const cv::Exception& error) {
    return absl::InternalError(absl::StrCat("OpenCV: ", error.what()));
  }
}

}  // namespace saccade::client
