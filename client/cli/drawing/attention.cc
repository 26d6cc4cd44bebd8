#include <algorithm>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/drawing/canvas.h"
#include "client/cli/drawing/drawing.h"
#include "server/pictures/coded_picture.h"

namespace saccade::client {
namespace {

constexpr double kMapTint = 0.6;
constexpr int kMaxColumns = 4;
constexpr int kMapSide = 320;  // longer side of a drawn map
constexpr int kMapMargin = 12;
constexpr int kTextHeight = 44;  // two lines

absl::StatusOr<cv::Mat> ReadMap(const AttentionMap& map) {
  const absl::StatusOr<cv::Mat> shades = server::ReadGreyPng(map.png, map.width, map.height);
  if (shades.ok() && shades->type() == CV_8UC1) return shades;
  return absl::InternalError(absl::StrCat("the daemon's attention map '", map.name, "' is not a grey PNG of ",
                                          map.width, "x", map.height, " pixels"));
}

// Whether the daemon's `part` is one that a network can see: it pads a picture to a few times its size at
// most.
bool IsPossible(const PicturePart& part, cv::Size picture) {
  constexpr float kMaxTimes = 16;
  const auto along = [](float at, float length, int side) {
    const float max = kMaxTimes * static_cast<float>(side);
    // False for NaN.
    return length > 0 && length <= max && at >= -max && at <= static_cast<float>(side);
  };
  return along(part.x, part.width, picture.width) && along(part.y, part.height, picture.height);
}

// Black where `part` reaches beyond the picture. REQUIRES: they overlap.
cv::Mat Part(const cv::Mat& picture, const cv::Rect& part) {
  const cv::Rect inside = part & cv::Rect(0, 0, picture.cols, picture.rows);
  cv::Mat cut;
  cv::copyMakeBorder(picture(inside), cut, inside.y - part.y, part.br().y - inside.br().y, inside.x - part.x,
                     part.br().x - inside.br().x, cv::BORDER_CONSTANT | cv::BORDER_ISOLATED);
  return cut;
}

// `background` may be empty.
cv::Mat Tile(const cv::Mat& shades, const cv::Mat& background, cv::Size size) {
  cv::Mat large, colors;
  cv::resize(shades, large, size, 0, 0, cv::INTER_NEAREST);
  cv::applyColorMap(large, colors, cv::COLORMAP_TURBO);
  if (background.empty()) return colors;
  cv::Mat picture, mixed;
  cv::resize(background, picture, size, 0, 0, cv::INTER_AREA);
  cv::addWeighted(colors, kMapTint, picture, 1 - kMapTint, 0, mixed);
  return mixed;
}

}  // namespace

absl::Status DrawAttention(absl::string_view picture, const std::optional<Region>& region,
                           const Answer& answer, const std::string& path) {
  return SaveDrawing(path, [&]() -> absl::StatusOr<cv::Mat> {
    const Explanation& explanation = *answer.explanation;
    const auto decoded = DecodePicture(picture, answer);
    cv::Rect seen(0, 0, std::max(1, answer.picture_width), std::max(1, answer.picture_height));
    const cv::Rect whole = seen;
    // The daemon rejects a region that is not within the picture.
    if (region) seen &= cv::Rect(region->x, region->y, region->width, region->height);
    if (explanation.seen) {
      const PicturePart& part = *explanation.seen;
      if (!IsPossible(part, whole.size()))
        return absl::InternalError("the daemon's maps do not cover a part of the picture");
      seen = cv::Rect(cvRound(part.x), cvRound(part.y), std::max(1, cvRound(part.width)),
                      std::max(1, cvRound(part.height)));
    }
    if ((seen & whole).empty())
      return absl::InternalError("the requested region does not overlap the picture that the daemon reports");
    const cv::Mat background = decoded.ok() ? Part(*decoded, seen) : cv::Mat();
    const double scale = static_cast<double>(kMapSide) / std::max(seen.width, seen.height);
    const cv::Size size(std::max(24, cvRound(scale * seen.width)),
                        std::max(24, cvRound(scale * seen.height)));
    const int count = static_cast<int>(explanation.maps.size());
    const int columns = std::clamp(count, 1, kMaxColumns);
    const int rows = (count + columns - 1) / columns;
    const cv::Size cell(size.width + kMapMargin, size.height + kTextHeight);
    const Font font(12);
    // Two lines, so that the layer's name is not cut in a drawing of one map.
    const std::string title =
        absl::StrCat(explanation.layer, ": ", count, " of ", explanation.available, " maps");
    cv::Mat canvas(2 * kMapMargin + kTextHeight + rows * cell.height,
                   std::max(kMapMargin + columns * cell.width, 2 * kMapMargin + kMapSide), CV_8UC3, kPanel);
    font.Write(canvas, font.Fit(title, canvas.cols - 2 * kMapMargin),
               {kMapMargin, kMapMargin + font.height()}, kLight);
    font.Write(canvas, font.Fit("blue is the minimum, red the maximum", canvas.cols - 2 * kMapMargin),
               {kMapMargin, kMapMargin + 2 * font.height() + 5}, kLight);
    for (int i = 0; i < count; ++i) {
      const AttentionMap& map = explanation.maps[static_cast<size_t>(i)];
      const auto shades = ReadMap(map);
      if (!shades.ok()) return shades.status();
      const cv::Point at(kMapMargin + i % columns * cell.width,
                         kMapMargin + kTextHeight + i / columns * cell.height);
      Tile(*shades, background, size).copyTo(canvas(cv::Rect(at, size)));
      const int y = at.y + size.height + 4 + font.height();
      font.Write(canvas, font.Fit(map.name, size.width), {at.x, y}, kLight);
      font.Write(canvas, font.Fit(absl::StrFormat("%.3g to %.3g", map.min, map.max), size.width),
                 {at.x, y + font.height() + 5}, kLight);
    }
    return canvas;
  });
}

}  // namespace saccade::client
