#include "client/cli/drawing/outline.h"

#include <algorithm>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "client/cpp/rle.h"

namespace saccade::client {

std::vector<OutlinePoint> OutlineOf(const RleMask& mask) {
  absl::StatusOr<MaskRegion> region = DecodeMask(mask);
  if (!region.ok() || region->pixels.empty()) return {};
  const cv::Mat pixels(region->height, region->width, CV_8UC1, region->pixels.data());
  std::vector<std::vector<cv::Point>> contours;
  cv::findContours(pixels, contours, cv::RETR_EXTERNAL, cv::CHAIN_APPROX_SIMPLE, {region->x, region->y});
  const auto largest = std::max_element(
      contours.begin(), contours.end(),
      [](const auto& one, const auto& other) { return cv::contourArea(one) < cv::contourArea(other); });
  std::vector<OutlinePoint> outline;
  for (const cv::Point& point : *largest) outline.push_back({point.x, point.y});
  return outline;
}

}  // namespace saccade::client
