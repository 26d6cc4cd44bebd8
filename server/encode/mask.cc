#include "server/encode/mask.h"

#include <algorithm>
#include <exception>
#include <new>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

constexpr uint8_t kInside = 255;

// The columns of a row from the first to the last mask pixel, as [begin, end). Empty if begin == end.
struct Extent {
  int64_t begin = 0;
  int64_t end = 0;
};

Extent ExtentOf(const float* row, int64_t width, float threshold) {
  Extent extent{0, width};
  const auto beside = [&](int64_t x) { return !(row[x] >= threshold); };
  while (extent.begin < extent.end && beside(extent.begin)) ++extent.begin;
  while (extent.end > extent.begin && beside(extent.end - 1)) --extent.end;
  return extent;
}

// The bounding box of the mask, relative to the region.
MaskBits BoxOf(const models::MaskRegion& region, float threshold) {
  int64_t left = region.width;
  int64_t right = 0;
  int64_t top = region.height;
  int64_t bottom = 0;
  for (int64_t y = 0; y < region.height; ++y) {
    const Extent extent = ExtentOf(region.values.data() + y * region.width, region.width, threshold);
    if (extent.begin == extent.end) continue;
    left = std::min(left, extent.begin);
    right = std::max(right, extent.end);
    top = std::min(top, y);
    bottom = y + 1;
  }
  if (left >= right) return {};
  MaskBits box;
  box.x = left;
  box.y = top;
  box.width = right - left;
  box.height = bottom - top;
  return box;
}

}  // namespace

MaskBits BitsOf(const models::MaskRegion& region, float threshold) {
  MaskBits bits = BoxOf(region, threshold);
  bits.values.reserve(static_cast<size_t>(bits.width * bits.height));
  for (int64_t y = 0; y < bits.height; ++y) {
    const float* const row = region.values.data() + (bits.y + y) * region.width + bits.x;
    for (int64_t x = 0; x < bits.width; ++x) {
      const bool inside = row[x] >= threshold;
      bits.values.push_back(inside ? kInside : 0);
      bits.area += inside ? 1 : 0;
    }
  }
  bits.x += region.x;
  bits.y += region.y;
  return bits;
}

absl::StatusOr<std::vector<MaskPolygon>> PolygonsOf(const MaskBits& bits) {
  std::vector<MaskPolygon> polygons;
  if (bits.values.empty()) return polygons;
  try {
    // OpenCV reads from the pixels and does not write to them, but its interface is not const-correct.
    const cv::Mat picture(static_cast<int>(bits.height), static_cast<int>(bits.width), CV_8UC1,
                          const_cast<uint8_t*>(bits.values.data()));
    std::vector<std::vector<cv::Point>> contours;
    std::vector<cv::Vec4i> family;
    // RETR_CCOMP yields two levels: the outlines of the mask's parts, and those of the holes in them.
    cv::findContours(picture, contours, family, cv::RETR_CCOMP, cv::CHAIN_APPROX_SIMPLE,
                     cv::Point(static_cast<int>(bits.x), static_cast<int>(bits.y)));
    constexpr int kParent = 3;
    for (size_t i = 0; i < contours.size(); ++i) {
      MaskPolygon& polygon = polygons.emplace_back();
      polygon.hole = family[i][kParent] >= 0;
      polygon.points.reserve(2 * contours[i].size());
      for (const cv::Point& point : contours[i]) {
        polygon.points.push_back(point.x);
        polygon.points.push_back(point.y);
      }
    }
  } catch (const std::bad_alloc&) {
    return OutOfMemory("out of memory for a mask's polygons; try again later");
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem)
      return OutOfMemory("out of memory for a mask's polygons; try again later");
    return absl::InternalError(absl::StrCat("a mask could not be converted to polygons: ", error.err));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("a mask could not be converted to polygons: ", error.what()));
  }
  return polygons;
}

}  // namespace saccade::server
