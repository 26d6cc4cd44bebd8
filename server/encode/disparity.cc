#include "server/encode/disparity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/pictures/png.h"

namespace saccade::server {
namespace {

static_assert(std::endian::native == std::endian::little, "floats are sent as they lie in memory");

constexpr float kStepsPerPixel = 256;

absl::Status CheckFilled(const models::Disparity& result) {
  const int64_t pixels = result.height * result.width;
  if (pixels > 0 && static_cast<int64_t>(result.values.size()) == pixels) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a disparity map of ", result.width, " x ", result.height,
                                          " pixels has a wrong number of values: ", result.values.size()));
}

}  // namespace

absl::StatusOr<std::string> DisparityPng(const models::Disparity& result) {
  if (absl::Status filled = CheckFilled(result); !filled.ok()) return filled;
  std::vector<uint16_t> steps(result.values.size());
  std::transform(result.values.begin(), result.values.end(), steps.begin(), [](float value) {
    if (std::isnan(value)) return uint16_t{0};
    return static_cast<uint16_t>(std::clamp(std::nearbyint(value * kStepsPerPixel), 1.0F, 65535.0F));
  });
  return GreyPng(steps.data(), result.height, result.width);
}

absl::StatusOr<std::string> DisparityFloats(const models::Disparity& result) {
  if (absl::Status filled = CheckFilled(result); !filled.ok()) return filled;
  return std::string(reinterpret_cast<const char*>(result.values.data()),
                     result.values.size() * sizeof(float));
}

}  // namespace saccade::server
