#include <algorithm>
#include <cmath>
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
    for (auto item = items.rbegin(); item != items.rend(); ++item) {
      const absl::Status status = DrawMask(*item, BrightColor(item->class_index));
      if (!status.ok()) return status;
    }
    for (auto item = items.rbegin(); item != items.rend(); ++item) DrawBox(*item);
    for (const Detection& item : items) PlaceTag(item);
    for (auto tag = tags_.rbegin(); tag != tags_.rend(); ++tag) DrawTag(*tag);
    if (items.empty()) {
      PlaceTag({}, "nothing found", kPanel);
      DrawTag(tags_.back());
    }
    return canvas_;
  }

 private:
  struct Tag {
    cv::Rect area;
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
  void DrawBox(const Detection& item) {
    const cv::Rect area = AreaOf(item.box);
    cv::rectangle(canvas_, area, kDark, line_ + 2);
    cv::rectangle(canvas_, area, BrightColor(item.class_index), line_);
  }

  void PlaceTag(const Detection& item) {
    const std::string text =
        absl::StrFormat("%s %.0f%%", Title(item.label, item.class_index), 100 * item.score);
    PlaceTag(AreaOf(item.box), text, BrightColor(item.class_index));
  }

  // Places the tag on top of the box, or at another side where no better detection's tag is.
  void PlaceTag(const cv::Rect& box, const std::string& text, const cv::Scalar& color) {
    const int inset = font_.height() / 2;
    Tag tag{{}, font_.Fit(text, canvas_.cols - 2 * inset), color};
    const cv::Size size(font_.WidthOf(tag.text) + 2 * inset, font_.height() + 2 * inset);
    const int right = box.x + box.width - size.width;
    const int bottom = box.y + box.height;
    const cv::Point places[] = {
        {box.x, box.y - size.height}, {box.x, box.y}, {box.x, bottom}, {box.x, bottom - size.height},
        {right, box.y - size.height}, {right, box.y}, {right, bottom}, {right, bottom - size.height}};
    for (const cv::Point& place : places) {
      tag.area = {{std::clamp(place.x, 0, std::max(0, canvas_.cols - size.width)),
                   std::clamp(place.y, 0, std::max(0, canvas_.rows - size.height))},
                  size};
      if (std::none_of(tags_.begin(), tags_.end(),
                       [&](const Tag& other) { return (other.area & tag.area).area() > 0; })) {
        break;
      }
    }
    tags_.push_back(tag);
  }

  void DrawTag(const Tag& tag) {
    const int inset = font_.height() / 2;
    cv::rectangle(canvas_, tag.area, tag.color, cv::FILLED);
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
