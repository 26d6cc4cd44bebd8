#include <algorithm>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "absl/strings/str_format.h"
#include "client/cli/drawing/canvas.h"
#include "client/cli/drawing/drawing.h"

namespace saccade::client {
namespace {

// Bounds the memory: a thousand rows under a large picture would exhaust it.
constexpr int kMaxRows = 20;

const cv::Scalar kTrack(58, 52, 48);
const cv::Scalar kFirst(80, 175, 76);
const cv::Scalar kOther(190, 140, 70);

void DrawRow(cv::Mat& panel, const cv::Rect& row, const ScoredClass& item, bool first) {
  const int inset = row.height / 6;
  const Font font(row.height * 0.42);
  const cv::Rect track(row.x, row.y + inset, row.width, row.height - 2 * inset);
  const double fraction = item.probability > 0 ? std::min(item.probability, 1.0f) : 0.0;
  cv::rectangle(panel, track, kTrack, cv::FILLED);
  cv::rectangle(panel, {track.x, track.y, cvRound(fraction * track.width), track.height},
                first ? kFirst : kOther, cv::FILLED);

  const std::string percent = absl::StrFormat("%.1f%%", 100 * item.probability);
  const int y = track.y + (track.height + font.height()) / 2;
  const int right = track.x + track.width - font.WidthOf(percent) - inset;
  font.Write(panel, percent, {right, y}, kLight);
  const int left = track.x + 2 * inset;
  font.Write(panel, font.Fit(Title(item.label, item.index), right - left - 2 * inset), {left, y}, kLight);
}

cv::Mat Draw(cv::Mat picture, const Classification& answer) {
  const double factor = Enlargement(picture.size());
  if (factor > 1) cv::resize(picture, picture, {}, factor, factor, cv::INTER_NEAREST);
  const int row_height = std::max(24, picture.cols / 24);
  const int margin = row_height / 3;
  const int rows = std::min(static_cast<int>(answer.classes.size()), kMaxRows);
  cv::Mat result = AddPanel(picture, 2 * margin + rows * row_height);
  for (int i = 0; i < rows; ++i) {
    const cv::Rect row(margin, picture.rows + margin + i * row_height, result.cols - 2 * margin, row_height);
    DrawRow(result, row, answer.classes[i], i == 0);
  }
  return result;
}

}  // namespace

absl::Status DrawClasses(absl::string_view picture, const Classification& answer, const std::string& path) {
  return SaveDrawing(path, [&]() -> absl::StatusOr<cv::Mat> {
    const absl::StatusOr<cv::Mat> decoded = DecodePicture(picture, answer);
    if (!decoded.ok()) return decoded.status();
    return Draw(*decoded, answer);
  });
}

}  // namespace saccade::client
