#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/drawing/canvas.h"
#include "client/cli/drawing/drawing.h"

namespace saccade::client {
namespace {

static_assert(std::endian::native == std::endian::little, "voxels come little-endian");

// Fraction of the voxels that is clipped at each end.
constexpr double kClippedFraction = 0.001;

template <typename Element>
std::vector<float> ReadPlane(const char* bytes, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, bytes + i * sizeof(Element), sizeof(Element));
    values[i] = static_cast<float>(element);
  }
  return values;
}

std::vector<float> MiddlePlane(const Restoration& answer) {
  const size_t count = static_cast<size_t>(answer.shape.height) * answer.shape.width;
  const char* bytes =
      answer.voxels.data() + answer.shape.depth / 2 * static_cast<size_t>(answer.shape.VoxelBytes()) * count;
  switch (answer.shape.type) {
    case VoxelType::kUint8:
      return ReadPlane<uint8_t>(bytes, count);
    case VoxelType::kUint16:
      return ReadPlane<uint16_t>(bytes, count);
    case VoxelType::kFloat32:
      break;
  }
  return ReadPlane<float>(bytes, count);
}

float Percentile(std::vector<float>& values, double share) {
  const auto at = values.begin() + std::lround(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

cv::Mat Draw(const Restoration& answer) {
  const std::vector<float> values = MiddlePlane(answer);
  cv::Mat shades(answer.shape.height, answer.shape.width, CV_8UC1, cv::Scalar(0));
  std::vector<float> numbers;
  std::copy_if(values.begin(), values.end(), std::back_inserter(numbers),
               [](float value) { return std::isfinite(value); });
  if (numbers.empty()) return shades;
  const double black = Percentile(numbers, kClippedFraction),
               white = Percentile(numbers, 1 - kClippedFraction);
  // A plane with a single value is drawn black.
  const double range = white > black ? white - black : 1;
  std::transform(values.begin(), values.end(), shades.begin<uchar>(), [&](float value) {
    const double share = (value - black) / range;
    return static_cast<uchar>(std::isfinite(share) ? std::lround(255 * std::clamp(share, 0.0, 1.0)) : 0);
  });
  return shades;
}

}  // namespace

absl::Status DrawVolume(const Restoration& answer, const std::string& path) {
  return SaveDrawing(path, [&]() -> absl::StatusOr<cv::Mat> {
    if (static_cast<int64_t>(answer.voxels.size()) != answer.shape.Bytes()) {
      return absl::InternalError(
          absl::StrCat("the volume has ", answer.voxels.size(), " bytes; expected ", answer.shape.Bytes()));
    }
    return Draw(answer);
  });
}

}  // namespace saccade::client
