#include <algorithm>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/drawing/canvas.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/drawing/palette.h"
#include "server/pictures/coded_picture.h"

namespace saccade::client {
namespace {

constexpr double kTint = 0.6;
constexpr int kMaxLegendEntries = 40;
// Label of the class that is no object, as on the page.
constexpr const char* kBackground = "background";
// Label of pixels outside the requested region; no model has that many classes.
constexpr int kOutsideRegion = 255;

// Decodes the label map and resizes it to the picture's size if another size was requested.
absl::StatusOr<cv::Mat> ReadLabels(const Segmentation& answer) {
  cv::Mat labels;
  if (answer.format == LabelMapFormat::kPng) {
    const absl::StatusOr<cv::Mat> read = server::ReadGreyPng(answer.label_map, answer.width, answer.height);
    if (read.ok()) labels = *read;
  }
  if (labels.empty() || labels.type() != CV_8UC1) {
    return absl::InternalError(absl::StrCat("the daemon's label map is not a grey PNG of ", answer.width, "x",
                                            answer.height, " pixels"));
  }
  const cv::Size size(answer.picture_width, answer.picture_height);
  if (labels.size() != size) cv::resize(labels, labels, size, 0, 0, cv::INTER_NEAREST);
  return labels;
}

cv::Mat ColorsOf(const cv::Mat& labels) {
  cv::Mat palette(1, 256, CV_8UC3);
  for (int i = 0; i < 256; ++i) palette.at<cv::Vec3b>(i) = VocColor(static_cast<uint8_t>(i));
  cv::Mat grey, colors;
  cv::cvtColor(labels, grey, cv::COLOR_GRAY2BGR);
  cv::LUT(grey, palette, colors);
  return colors;
}

// Marks both sides of every border between classes: one pixel wide, more in large pictures.
cv::Mat BordersOf(const cv::Mat& labels) {
  const int reach = std::max(1, cvRound(std::sqrt(static_cast<double>(labels.total())) / 900));
  const cv::Size side(2 * reach + 1, 2 * reach + 1);
  cv::Mat borders;
  cv::morphologyEx(labels, borders, cv::MORPH_GRADIENT, cv::getStructuringElement(cv::MORPH_ELLIPSE, side));
  return borders;
}

struct Entry {
  cv::Scalar color;
  std::string title;
  std::string share;
};

std::vector<Entry> LegendOf(const Segmentation& answer) {
  std::vector<Entry> entries;
  for (const ClassArea& area : answer.areas) {
    if (static_cast<int>(entries.size()) == kMaxLegendEntries) {
      entries.back() = {kPanel, absl::StrCat("and ", answer.areas.size() - kMaxLegendEntries + 1, " more"),
                        ""};
      break;
    }
    const cv::Vec3b color = VocColor(static_cast<uint8_t>(area.class_index));
    entries.push_back({cv::Scalar(color[0], color[1], color[2]), Title(area.label, area.class_index),
                       absl::StrFormat("%.1f%%", 100 * area.fraction)});
  }
  return entries;
}

void DrawEntry(cv::Mat& canvas, const cv::Rect& cell, const Entry& entry) {
  const Font font(cell.height * 0.42);
  const int side = cell.height * 2 / 3;
  const cv::Rect swatch(cell.x, cell.y + (cell.height - side) / 2, side, side);
  cv::rectangle(canvas, swatch, entry.color, cv::FILLED);
  if (!entry.share.empty()) cv::rectangle(canvas, swatch, kLight, std::max(1, cell.height / 40));
  const int y = cell.y + (cell.height + font.height()) / 2;
  const int right = cell.x + cell.width - font.WidthOf(entry.share) - cell.height / 2;
  font.Write(canvas, entry.share, {right, y}, kLight);
  const int left = cell.x + cell.height;
  font.Write(canvas, font.Fit(entry.title, right - left - cell.height / 3), {left, y}, kLight);
}

cv::Mat AddLegend(const cv::Mat& picture, const Segmentation& answer) {
  const std::vector<Entry> entries = LegendOf(answer);
  const int height = std::max(24, picture.cols / 30);
  const int margin = height / 2;
  const int count = static_cast<int>(entries.size());
  const int room = std::clamp((picture.cols - margin) / (8 * height), 1, 4);
  const int rows = (count + room - 1) / room;
  const int down = std::max(1, rows);
  const int columns = std::max(1, (count + down - 1) / down);
  cv::Mat canvas = AddPanel(picture, rows * height + 2 * margin);
  const int width = (canvas.cols - margin) / columns;
  // Filled column by column, so that the largest areas stand below each other.
  for (int i = 0; i < count; ++i) {
    const cv::Point at(margin + i / down * width, picture.rows + margin + i % down * height);
    DrawEntry(canvas, {at, cv::Size(width, height)}, entries[i]);
  }
  return canvas;
}

cv::Mat Draw(const cv::Mat& picture, const cv::Mat& labels, const Segmentation& answer) {
  const double factor = Enlargement(picture.size());
  cv::Mat large_picture = picture, large_labels = labels;
  if (factor > 1) {
    cv::resize(picture, large_picture, {}, factor, factor, cv::INTER_NEAREST);
    cv::resize(labels, large_labels, large_picture.size(), 0, 0, cv::INTER_NEAREST);
  }
  const cv::Mat colors = ColorsOf(large_labels);
  cv::Mat blended;
  cv::addWeighted(large_picture, 1 - kTint, colors, kTint, 0, blended);
  // Pascal VOC's colour of the background is black, which would hide most of the picture.
  for (const ClassArea& area : answer.areas) {
    if (area.label == kBackground) large_picture.copyTo(blended, large_labels == area.class_index);
  }
  colors.copyTo(blended, BordersOf(large_labels));
  large_picture.copyTo(blended, large_labels == kOutsideRegion);
  return AddLegend(blended, answer);
}

}  // namespace

absl::Status DrawSegmentation(absl::string_view picture, const Segmentation& answer,
                              const std::string& path) {
  return SaveDrawing(path, [&]() -> absl::StatusOr<cv::Mat> {
    const absl::StatusOr<cv::Mat> decoded = DecodePicture(picture, answer);
    if (!decoded.ok()) return decoded.status();
    const absl::StatusOr<cv::Mat> labels = ReadLabels(answer);
    if (!labels.ok()) return labels.status();
    return Draw(*decoded, *labels, answer);
  });
}

}  // namespace saccade::client
