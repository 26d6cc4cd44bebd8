#include "models/networks/mask_rcnn/anchors.h"

#include <cmath>

namespace saccade::models {
namespace {

constexpr float kFinestSide = 32;
constexpr int64_t kFinestSpacing = 4;
constexpr std::array<float, kAspectRatios> kRatios = {0.5F, 1, 2};  // height divided by width

}  // namespace

Anchors::Anchors(int level, Size spacing) : spacing_(spacing) {
  const float side = std::ldexp(kFinestSide, level);
  for (size_t i = 0; i < kRatios.size(); ++i) {
    const float tall = std::sqrt(kRatios[i]);
    const float wide = 1 / tall;
    // Rounds halves to even, as torchvision does.
    const float x = std::nearbyint(wide * side / 2);
    const float y = std::nearbyint(tall * side / 2);
    cells_[i] = {-x, -y, x, y};
  }
}

Box Anchors::At(int64_t row, int64_t column, int64_t ratio) const {
  const auto x = static_cast<float>(column * spacing_.width);
  const auto y = static_cast<float>(row * spacing_.height);
  const Box& cell = cells_[static_cast<size_t>(ratio)];
  return {x + cell.x_min, y + cell.y_min, x + cell.x_max, y + cell.y_max};
}

Size SpacingOf(int level, Size bucket, Size grid, bool exact) {
  if (exact) return {kFinestSpacing << level, kFinestSpacing << level};
  return {bucket.height / grid.height, bucket.width / grid.width};
}

}  // namespace saccade::models
