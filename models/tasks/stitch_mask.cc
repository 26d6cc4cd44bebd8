#include "models/tasks/stitch_mask.h"

#include <algorithm>
#include <cmath>

#include "models/tasks/mask_frame.h"

namespace saccade::models {
namespace {

// The probability of a part at a point of the picture, 0 outside of its box. `mask` is the part's, over its
// box.
float At(const Detection& part, const std::vector<float>& mask, int64_t side, float x, float y) {
  const float width = part.x_max - part.x_min;
  const float height = part.y_max - part.y_min;
  const bool inside = x >= part.x_min && x <= part.x_max && y >= part.y_min && y <= part.y_max;
  if (!inside || !(width > 0) || !(height > 0)) return 0;
  const auto cells = static_cast<float>(side);
  const float last = cells - 1;
  const float column = std::clamp((x - part.x_min) / width * cells - 0.5F, 0.0F, last);
  const float row = std::clamp((y - part.y_min) / height * cells - 0.5F, 0.0F, last);
  const auto left = static_cast<int64_t>(std::floor(column));
  const auto top = static_cast<int64_t>(std::floor(row));
  const int64_t right = std::min(left + 1, side - 1);
  const int64_t bottom = std::min(top + 1, side - 1);
  const float x_part = column - static_cast<float>(left);
  const float y_part = row - static_cast<float>(top);
  const auto value = [&](int64_t r, int64_t c) { return mask[static_cast<size_t>(r * side + c)]; };
  const float above = value(top, left) * (1 - x_part) + value(top, right) * x_part;
  const float below = value(bottom, left) * (1 - x_part) + value(bottom, right) * x_part;
  return above * (1 - y_part) + below * y_part;
}

}  // namespace

std::vector<float> StitchMask(const std::vector<const Detection*>& parts, const Detection& whole,
                              int64_t mask_side) {
  const auto values = static_cast<size_t>(mask_side * mask_side);
  std::vector<std::vector<float>> masks;
  for (const Detection* part : parts) masks.push_back(MaskOverBox(*part, mask_side));
  const bool masked = mask_side > 0 && std::all_of(masks.begin(), masks.end(),
                                                   [&](const auto& one) { return one.size() == values; });
  if (!masked) return {};
  std::vector<float> mask(values, 0.0F);
  const auto cells = static_cast<float>(mask_side);
  for (int64_t row = 0; row < mask_side; ++row) {
    const float y = whole.y_min + (static_cast<float>(row) + 0.5F) / cells * (whole.y_max - whole.y_min);
    for (int64_t column = 0; column < mask_side; ++column) {
      const float x = whole.x_min + (static_cast<float>(column) + 0.5F) / cells * (whole.x_max - whole.x_min);
      float& value = mask[static_cast<size_t>(row * mask_side + column)];
      for (size_t i = 0; i < parts.size(); ++i)
        value = std::max(value, At(*parts[i], masks[i], mask_side, x, y));
    }
  }
  return mask;
}

}  // namespace saccade::models
