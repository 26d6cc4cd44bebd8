#include <algorithm>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "client/cli/drawing/axis.h"
#include "client/cli/drawing/canvas.h"
#include "client/cli/drawing/drawing.h"

namespace saccade::client {
namespace {

struct Range {
  float min = 0;
  float max = 1;
};

// Returns the range of the finite values, never empty.
Range RangeOf(const std::vector<float>& values) {
  Range range{INFINITY, -INFINITY};
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
  }
  if (range.min > range.max) return {};
  // Next to large values 1/256 is less than the precision of a float.
  if (!(range.max > range.min)) range.max = range.min + std::max(1.0f / 256, std::abs(range.min) / 256);
  return range;
}

cv::Mat Turbo(const cv::Mat& shades) {
  cv::Mat colors;
  cv::applyColorMap(shades, colors, cv::COLORMAP_TURBO);
  return colors;
}

cv::Mat ColorsOf(int width, int height, const std::vector<float>& values, const Range& range) {
  cv::Mat shades(height, width, CV_8UC1);
  cv::Mat missing(height, width, CV_8UC1, cv::Scalar(0));
  for (size_t i = 0; i < values.size(); ++i) {
    const bool known = std::isfinite(values[i]);
    const float share = known ? (values[i] - range.min) / (range.max - range.min) : 0;
    shades.data[i] = static_cast<uchar>(std::lround(255 * share));
    missing.data[i] = known ? 0 : 255;
  }
  cv::Mat colors = Turbo(shades);
  colors.setTo(cv::Scalar(0, 0, 0), missing);
  return colors;
}

// Adds a colour scale below the map, labelled in `unit`, which may be empty.
cv::Mat AddScale(const cv::Mat& map, const Range& range, const std::string& unit) {
  const int row = std::max(20, map.cols / 36);
  cv::Mat canvas = AddPanel(map, 3 * row);
  const Font font(row * 0.42);
  const int left = row, right = canvas.cols - 2 * row - font.WidthOf(unit);
  const cv::Rect bar(left, map.rows + row * 2 / 3, right - left, row * 2 / 3);
  cv::Mat shades(1, bar.width, CV_8UC1);
  for (int x = 0; x < bar.width; ++x)
    shades.data[x] = static_cast<uchar>(255 * x / std::max(1, bar.width - 1));
  cv::resize(Turbo(shades), canvas(bar), bar.size(), 0, 0, cv::INTER_NEAREST);

  const int line = std::max(1, row / 20);
  const int y = bar.y + bar.height + row / 3 + font.height();
  ForTicks(range.min, range.max, std::max(2, bar.width / (4 * row)), [&](double at, const std::string& text) {
    const int x = left + cvRound((at - range.min) / (range.max - range.min) * (bar.width - 1));
    cv::line(canvas, {x, bar.y + bar.height}, {x, bar.y + bar.height + row / 6}, kLight, line);
    font.Write(canvas, text, {x - font.WidthOf(text) / 2, y}, kLight);
  });
  font.Write(canvas, unit, {right + row, bar.y + (bar.height + font.height()) / 2}, kLight);
  return canvas;
}

absl::Status DrawMap(const Disparity& answer, const std::vector<float>& values, const std::string& unit,
                     const std::string& path) {
  return SaveDrawing(path, [&]() -> absl::StatusOr<cv::Mat> {
    const Range range = RangeOf(values);
    cv::Mat map = ColorsOf(answer.width, answer.height, values, range);
    const double factor = Enlargement(map.size());
    if (factor > 1) cv::resize(map, map, {}, factor, factor, cv::INTER_NEAREST);
    return AddScale(map, range, unit);
  });
}

}  // namespace

absl::Status DrawDisparity(const Disparity& answer, const std::vector<float>& values,
                           const std::string& path) {
  return DrawMap(answer, values, "px", path);
}

absl::Status DrawDepth(const DepthMap& answer, const std::vector<float>& values, const std::string& path) {
  return DrawMap(answer, values, "", path);
}

}  // namespace saccade::client
