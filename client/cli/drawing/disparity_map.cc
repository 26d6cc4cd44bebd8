#include "client/cli/drawing/disparity_map.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <opencv2/core.hpp>

#include "absl/strings/str_cat.h"
#include "server/pictures/coded_picture.h"
#include "server/pictures/png.h"

namespace saccade::client {
namespace {

static_assert(std::endian::native == std::endian::little, "floats come little-endian");

constexpr float kStepsPerPixel = 256;

absl::Status NotAsSaid(const Disparity& answer, const char* expected) {
  return absl::InternalError(absl::StrCat("the daemon's disparity map is not ", expected, " of ",
                                          answer.width, "x", answer.height, " pixels"));
}

absl::StatusOr<std::vector<float>> FromPng(const Disparity& answer) {
  const absl::StatusOr<cv::Mat> steps = server::ReadGreyPng(answer.map, answer.width, answer.height);
  if (!steps.ok() || steps->type() != CV_16UC1) return NotAsSaid(answer, "a grey PNG with 16 bits");
  std::vector<float> values(steps->total());
  std::transform(steps->begin<uint16_t>(), steps->end<uint16_t>(), values.begin(), [](uint16_t step) {
    return step == 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(step) / kStepsPerPixel;
  });
  return values;
}

}  // namespace

absl::StatusOr<std::vector<float>> ReadDisparity(const Disparity& answer) {
  if (answer.width < 1 || answer.height < 1) return NotAsSaid(answer, "a map");
  if (answer.format == DisparityFormat::kPng16) return FromPng(answer);
  const size_t pixels = static_cast<size_t>(answer.width) * answer.height;
  if (answer.map.size() != pixels * sizeof(float)) return NotAsSaid(answer, "4 bytes a pixel");
  std::vector<float> values(pixels);
  std::memcpy(values.data(), answer.map.data(), answer.map.size());
  return values;
}

absl::StatusOr<std::string> DisparityPng(int width, int height, const std::vector<float>& values) {
  std::vector<uint16_t> steps(values.size());
  std::transform(values.begin(), values.end(), steps.begin(), [](float value) {
    if (std::isnan(value)) return uint16_t{0};
    return static_cast<uint16_t>(std::lround(std::clamp(value * kStepsPerPixel, 1.0f, 65535.0f)));
  });
  return server::GreyPng(steps.data(), height, width);
}

}  // namespace saccade::client
