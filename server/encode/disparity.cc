#include "server/encode/disparity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/pictures/png.h"
#include "server/pictures/wanted_rows.h"

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

uint16_t StepsOf(float value) {
  if (std::isnan(value)) return 0;
  return static_cast<uint16_t>(std::clamp(std::nearbyint(value * kStepsPerPixel), 1.0F, 65535.0F));
}

}  // namespace

absl::StatusOr<std::string> DisparityPng(const models::Disparity& result, const StillWanted& wanted) {
  if (absl::Status filled = CheckFilled(result); !filled.ok()) return filled;
  std::vector<uint16_t> steps;
  // Not filled first: all of a large map's memory would be touched before the first question.
  steps.reserve(result.values.size());
  std::vector<uint16_t> piece(static_cast<size_t>(kValuesBetweenQuestions));
  const auto append = [&](int64_t begin, int64_t count) {
    const auto from = result.values.begin() + begin;
    std::transform(from, from + count, piece.begin(), StepsOf);
    steps.insert(steps.end(), piece.begin(), piece.begin() + count);
  };
  absl::Status converted = ForWantedPieces(result.height * result.width, wanted, append);
  if (!converted.ok()) return converted;
  return GreyPng(steps.data(), result.height, result.width, wanted);
}

absl::StatusOr<std::string> DisparityFloats(const models::Disparity& result, const StillWanted& wanted) {
  if (absl::Status filled = CheckFilled(result); !filled.ok()) return filled;
  std::string bytes;
  bytes.reserve(result.values.size() * sizeof(float));
  const auto append = [&](int64_t begin, int64_t count) {
    bytes.append(reinterpret_cast<const char*>(result.values.data() + begin),
                 static_cast<size_t>(count) * sizeof(float));
  };
  absl::Status copied = ForWantedPieces(result.height * result.width, wanted, append);
  if (!copied.ok()) return copied;
  return bytes;
}

}  // namespace saccade::server
