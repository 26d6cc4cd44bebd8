#include "client/cli/drawing/mask_pixels.h"

#include <algorithm>
#include <cstdint>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/pictures/coded_picture.h"

namespace saccade::client {
namespace {

absl::StatusOr<MaskRegion> FromRuns(const RleMask& mask, int width, int height) {
  if (mask.width != width || mask.height != height) {
    return absl::InternalError(
        absl::StrCat("a mask is ", mask.width, "x", mask.height, "; expected the picture's size"));
  }
  return DecodeMask(mask);
}

bool LiesWithin(const MaskPicture& mask, int width, int height) {
  return mask.x >= 0 && mask.y >= 0 && mask.width >= 1 && mask.height >= 1 && mask.width <= width - mask.x &&
         mask.height <= height - mask.y;
}

absl::StatusOr<MaskRegion> FromPicture(const MaskPicture& mask, int width, int height) {
  if (mask.width == 0 && mask.height == 0 && mask.png.empty()) return MaskRegion{};
  if (!LiesWithin(mask, width, height)) {
    return absl::InternalError(absl::StrCat("a mask of ", mask.width, "x", mask.height, " pixels from ",
                                            mask.x, ",", mask.y, " is not within the picture, ", width, "x",
                                            height));
  }
  const absl::StatusOr<cv::Mat> pixels = server::ReadGreyPng(mask.png, mask.width, mask.height);
  if (!pixels.ok() || pixels->type() != CV_8UC1) {
    return absl::InternalError(
        absl::StrCat("a mask is not a grey PNG of ", mask.width, "x", mask.height, " pixels"));
  }
  return MaskRegion{mask.x, mask.y, mask.width, mask.height, {pixels->data, pixels->data + pixels->total()}};
}

absl::StatusOr<std::vector<cv::Point>> PointsOf(const MaskPolygon& polygon, int width, int height) {
  if (polygon.points.empty() || polygon.points.size() % 2 != 0) {
    return absl::InternalError(
        absl::StrCat("a mask's polygon has ", polygon.points.size(), " numbers; expected x and y in turn"));
  }
  std::vector<cv::Point> points;
  for (size_t i = 0; i < polygon.points.size(); i += 2) {
    const cv::Point point(polygon.points[i], polygon.points[i + 1]);
    if (point.x < 0 || point.y < 0 || point.x >= width || point.y >= height) {
      return absl::InternalError(absl::StrCat("a mask's polygon has the point ", point.x, ",", point.y,
                                              ", which is outside the picture, ", width, "x", height));
    }
    points.push_back(point);
  }
  return points;
}

absl::StatusOr<MaskRegion> FromPolygons(const MaskPolygons& mask, int width, int height) {
  std::vector<std::vector<cv::Point>> polygons;
  cv::Rect area;
  for (const MaskPolygon& polygon : mask.polygons) {
    absl::StatusOr<std::vector<cv::Point>> points = PointsOf(polygon, width, height);
    if (!points.ok()) return points.status();
    area |= cv::boundingRect(*points);
    polygons.push_back(*std::move(points));
  }
  if (polygons.empty()) return MaskRegion{};
  cv::Mat pixels(area.size(), CV_8UC1, cv::Scalar(0));
  cv::fillPoly(pixels, polygons, cv::Scalar(255), cv::LINE_8, 0, -area.tl());
  return MaskRegion{area.x, area.y, area.width, area.height, {pixels.data, pixels.data + pixels.total()}};
}

}  // namespace

absl::StatusOr<MaskRegion> MaskPixels(const Detection& item, int width, int height) {
  try {
    if (item.mask) return FromRuns(*item.mask, width, height);
    if (item.mask_picture) return FromPicture(*item.mask_picture, width, height);
    if (item.mask_polygons) return FromPolygons(*item.mask_polygons, width, height);
    return MaskRegion{};
  } catch (const cv::Exception& error) {
    return absl::InternalError(absl::StrCat("a mask cannot be read: OpenCV: ", error.what()));
  }
}

}  // namespace saccade::client
