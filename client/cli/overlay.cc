#include "client/cli/overlay.h"

#include <algorithm>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace saccade::client {
namespace {

// Narrower pictures are enlarged, up to this height: a label needs some room to be read.
constexpr int kMinWidth = 360;
constexpr int kMaxEnlargedHeight = 1440;
// A thousand rows under a large picture would fill the memory.
constexpr int kMaxRows = 20;
constexpr int kFont = cv::FONT_HERSHEY_DUPLEX;

const cv::Scalar kPanel(32, 28, 26);
const cv::Scalar kTrack(58, 52, 48);
const cv::Scalar kFirst(80, 175, 76);
const cv::Scalar kOther(190, 140, 70);
const cv::Scalar kText(245, 245, 245);

// The font knows ASCII alone.
std::string Ascii(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) continue;
    result += byte >= 0x20 && byte < 0x7F ? c : '?';
  }
  return result;
}

std::string Fit(std::string text, double scale, int thickness, int width) {
  int baseline = 0;
  if (cv::getTextSize(text, kFont, scale, thickness, &baseline).width <= width) return text;
  while (!text.empty() && cv::getTextSize(text + "...", kFont, scale, thickness, &baseline).width > width) {
    text.pop_back();
  }
  return text + "...";
}

void DrawRow(cv::Mat& panel, const cv::Rect& row, const ScoredClass& item, bool first) {
  const int inset = row.height / 6;
  const double scale = row.height / 50.0;
  const int thickness = std::max(1, row.height / 30);
  const cv::Rect track(row.x, row.y + inset, row.width, row.height - 2 * inset);
  const double fraction = item.probability > 0 ? std::min(item.probability, 1.0f) : 0.0;
  cv::rectangle(panel, track, kTrack, cv::FILLED);
  cv::rectangle(panel, {track.x, track.y, cvRound(fraction * track.width), track.height},
                first ? kFirst : kOther, cv::FILLED);

  const std::string percent = absl::StrFormat("%.1f%%", 100 * item.probability);
  int baseline = 0;
  const cv::Size size = cv::getTextSize(percent, kFont, scale, thickness, &baseline);
  const int y = track.y + (track.height + size.height) / 2;
  const int right = track.x + track.width - size.width - inset;
  cv::putText(panel, percent, {right, y}, kFont, scale, kText, thickness, cv::LINE_AA);
  const std::string label = Ascii(item.label.empty() ? absl::StrCat("class ", item.index) : item.label);
  const int left = track.x + 2 * inset;
  cv::putText(panel, Fit(label, scale, thickness, right - left - 2 * inset), {left, y}, kFont, scale, kText,
              thickness, cv::LINE_AA);
}

cv::Mat Draw(cv::Mat picture, const Classification& answer) {
  const double factor = std::min(static_cast<double>(kMinWidth) / picture.cols,
                                 static_cast<double>(kMaxEnlargedHeight) / picture.rows);
  if (factor > 1) cv::resize(picture, picture, {}, factor, factor, cv::INTER_NEAREST);
  const int width = std::max(picture.cols, kMinWidth);
  const int row_height = std::max(24, width / 24);
  const int margin = row_height / 3;
  const int rows = std::min(static_cast<int>(answer.classes.size()), kMaxRows);
  cv::Mat result;
  cv::copyMakeBorder(picture, result, 0, 2 * margin + rows * row_height, 0, width - picture.cols,
                     cv::BORDER_CONSTANT, kPanel);
  for (int i = 0; i < rows; ++i) {
    const cv::Rect row(margin, picture.rows + margin + i * row_height, width - 2 * margin, row_height);
    DrawRow(result, row, answer.classes[i], i == 0);
  }
  return result;
}

}  // namespace

absl::Status WriteOverlay(absl::string_view picture, const Classification& answer, const std::string& path) {
  try {
    const cv::Mat bytes(1, static_cast<int>(picture.size()), CV_8UC1, const_cast<char*>(picture.data()));
    const cv::Mat decoded = cv::imdecode(bytes, cv::IMREAD_COLOR);
    if (decoded.empty()) return absl::InvalidArgumentError("this OpenCV cannot decode the picture");
    if (cv::imwrite(path, Draw(decoded, answer))) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("could not write ", path));
  } catch (const cv::Exception& error) {
    return absl::InternalError(absl::StrCat("OpenCV: ", error.what()));
  }
}

}  // namespace saccade::client
