#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "absl/strings/str_format.h"
#include "client/cli/drawing/canvas.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/drawing/mask_pixels.h"
#include "client/cli/drawing/palette.h"

namespace saccade::client {
namespace {

constexpr double kMaskTint = 0.42;
constexpr double kSmallestText = 9;
// Least score of a keypoint that is drawn as visible.
constexpr float kVisiblePoint = 0.5F;

class DetectionDrawing {
 public:
  DetectionDrawing(cv::Mat picture, const Detections& answer)
      : canvas_(std::move(picture)),
        answer_(answer),
        factor_(Enlargement(canvas_.size())),
        unit_(std::sqrt(static_cast<double>(canvas_.total())) * factor_),
        line_(std::max(2, cvRound(unit_ / 320))),
        font_(std::max(kSmallestText, unit_ / 54)) {
    if (factor_ > 1) cv::resize(canvas_, canvas_, {}, factor_, factor_, cv::INTER_NEAREST);
  }

  // The best detections are drawn last, above the others, but their tags are placed first.
  absl::StatusOr<cv::Mat> Draw() {
    const auto& items = answer_.items;
    std::map<int64_t, int> seen;
    for (const Detection& item : items)
      colors_.push_back(BrightColor(item.class_index, seen[item.class_index]++));
    for (size_t i = items.size(); i-- > 0;) {
      const absl::Status status = DrawMask(items[i], colors_[i]);
      if (!status.ok()) return status;
    }
    for (size_t i = items.size(); i-- > 0;) DrawBox(items[i], colors_[i]);
    for (size_t i = items.size(); i-- > 0;) DrawKeypoints(items[i], colors_[i]);
    for (size_t i = 0; i < items.size(); ++i) PlaceTag(items[i], colors_[i]);
    for (const Tag& tag : tags_) DrawTie(tag);
    for (auto tag = tags_.rbegin(); tag != tags_.rend(); ++tag) DrawTag(*tag);
    if (items.empty()) {
      PlaceTag(cv::Rect(), "nothing found", kPanel);
      DrawTag(tags_.back());
    }
    return canvas_;
  }

 private:
  struct Tag {
    cv::Rect area;
    cv::Rect box;
    std::string text;
    cv::Scalar color;
  };

  absl::Status DrawMask(const Detection& item, const cv::Scalar& color) {
    absl::StatusOr<MaskRegion> region = MaskPixels(item, answer_.picture_width, answer_.picture_height);
    if (!region.ok()) return region.status();
    if (region->pixels.empty()) return absl::OkStatus();
    const cv::Mat small(region->height, region->width, CV_8UC1, region->pixels.data());
    // The corners are rounded like the picture's, so that the mask ends where its pixels do.
    const cv::Rect area(Scaled(region->x, region->y),
                        Scaled(region->x + region->width, region->y + region->height));
    cv::Mat pixels;
    cv::resize(small, pixels, area.size(), 0, 0, cv::INTER_NEAREST);
    cv::Mat part = canvas_(area);
    cv::Mat tinted;
    cv::addWeighted(part, 1 - kMaskTint, cv::Mat(part.size(), part.type(), color), kMaskTint, 0, tinted);
    tinted.copyTo(part, pixels);
    std::vector<std::vector<cv::Point>> contours;
    cv::findContours(pixels, contours, cv::RETR_CCOMP, cv::CHAIN_APPROX_NONE, area.tl());
    // The dark rim separates masks of similar colours, and keeps a mask visible on a background of its
    // colour.
    cv::drawContours(canvas_, contours, -1, kDark, line_ + 2, cv::LINE_AA);
    cv::drawContours(canvas_, contours, -1, color, line_, cv::LINE_AA);
    return absl::OkStatus();
  }

  cv::Point Scaled(double x, double y) const {
    return {std::clamp(cvRound(x * factor_), 0, canvas_.cols),
            std::clamp(cvRound(y * factor_), 0, canvas_.rows)};
  }

  cv::Rect AreaOf(const Box& box) const {
    return {Scaled(box.x_min, box.y_min), Scaled(box.x_max, box.y_max)};
  }

  // The dark rim keeps the box visible on a background of its own colour.
  void DrawBox(const Detection& item, const cv::Scalar& color) {
    const cv::Rect area = AreaOf(item.box);
    cv::rectangle(canvas_, area, kDark, line_ + 2);
    cv::rectangle(canvas_, area, color, line_);
  }

  // A dot for each point in the picture; a ring for those that are rather not visible.
  void DrawKeypoints(const Detection& item, const cv::Scalar& color) {
    const int radius = 2 * line_ + 1;
    for (const Keypoint& point : item.keypoints) {
      // False for NaN, too.
      const bool inside = point.x >= 0 && point.y >= 0 &&
                          point.x <= static_cast<float>(answer_.picture_width) &&
                          point.y <= static_cast<float>(answer_.picture_height);
      if (!inside) continue;
      const cv::Point center = Scaled(point.x, point.y);
      cv::circle(canvas_, center, radius, kDark, line_ + 2, cv::LINE_AA);
      cv::circle(canvas_, center, radius, color, line_, cv::LINE_AA);
      if (point.score >= kVisiblePoint) cv::circle(canvas_, center, radius, color, cv::FILLED, cv::LINE_AA);
    }
  }

  void PlaceTag(const Detection& item, const cv::Scalar& color) {
    const std::string text =
        absl::StrFormat("%s %.0f%%", Title(item.label, item.class_index), 100 * item.score);
    PlaceTag(AreaOf(item.box), text, color);
  }

  // Calls `visit` with the places where a tag of `size` may stand, the best first, until it returns true: at
  // the corners of the box, and then further and further above and below it.
  template <typename Visit>
  void ForPlaces(const cv::Rect& box, cv::Size size, const Visit& visit) const {
    const int right = box.x + box.width - size.width;
    const int bottom = box.y + box.height;
    for (const int x : {box.x, right}) {
      for (const int y : {box.y - size.height, box.y, bottom, bottom - size.height}) {
        if (visit(cv::Point(x, y))) return;
      }
    }
    for (int away = size.height; away < canvas_.rows; away += size.height + 1) {
      for (const int x : {box.x, right, box.x - size.width, box.x + box.width}) {
        for (const int y : {box.y - size.height - away, bottom + away}) {
          if (visit(cv::Point(x, y))) return;
        }
      }
    }
  }

  // Places the tag where it covers least of the tags of better detections: nothing, if there is room.
  void PlaceTag(const cv::Rect& box, const std::string& text, const cv::Scalar& color) {
    const int inset = font_.height() / 2;
    Tag tag{{}, box, font_.Fit(text, canvas_.cols - 2 * inset), color};
    const cv::Size size(font_.WidthOf(tag.text) + 2 * inset, font_.height() + 2 * inset);
    int least = std::numeric_limits<int>::max();
    ForPlaces(box, size, [&](const cv::Point& place) {
      const cv::Rect area({std::clamp(place.x, 0, std::max(0, canvas_.cols - size.width)),
                           std::clamp(place.y, 0, std::max(0, canvas_.rows - size.height))},
                          size);
      int covered = 0;
      for (const Tag& other : tags_) covered += (other.area & area).area();
      if (covered < least) {
        least = covered;
        tag.area = area;
      }
      return least == 0;
    });
    tags_.push_back(tag);
  }

  // A tag that was moved away from its box is tied to it.
  void DrawTie(const Tag& tag) {
    const cv::Rect around(tag.box.x - 1, tag.box.y - 1, tag.box.width + 2, tag.box.height + 2);
    if ((around & tag.area).area() > 0) return;
    const cv::Point center(tag.area.x + tag.area.width / 2, tag.area.y + tag.area.height / 2);
    const cv::Point nearest(std::clamp(center.x, tag.box.x, tag.box.x + tag.box.width),
                            std::clamp(center.y, tag.box.y, tag.box.y + tag.box.height));
    cv::line(canvas_, center, nearest, kDark, line_ + 2, cv::LINE_AA);
    cv::line(canvas_, center, nearest, tag.color, line_, cv::LINE_AA);
  }

  void DrawTag(const Tag& tag) {
    const int inset = font_.height() / 2;
    cv::rectangle(canvas_, tag.area, tag.color, cv::FILLED);
    cv::rectangle(canvas_, tag.area, kDark, 1);
    font_.Write(canvas_, tag.text, {tag.area.x + inset, tag.area.y + inset + font_.height()},
                TextColorOn(tag.color));
  }

  cv::Mat canvas_;
  const Detections& answer_;
  const double factor_;
  // The side of a square with the picture's area; lines and letters are scaled by it.
  const double unit_;
  const int line_;
  const Font font_;
  // By detection.
  std::vector<cv::Scalar> colors_;
  std::vector<Tag> tags_;
};

}  // namespace

absl::Status DrawDetections(absl::string_view picture, const Detections& answer, const std::string& path) {
  return SaveDrawing(path, [&]() -> absl::StatusOr<cv::Mat> {
    const absl::StatusOr<cv::Mat> decoded = DecodePicture(picture, answer);
    if (!decoded.ok()) return decoded.status();
    return DetectionDrawing(*decoded, answer).Draw();
  });
}

}  // namespace saccade::client
