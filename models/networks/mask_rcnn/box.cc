#include "models/networks/mask_rcnn/box.h"

#include <algorithm>

#include "models/networks/growth.h"

namespace saccade::models {

Box Moved(const Box& box, const float* deltas, const BoxWeights& weights) {
  const float width = box.x_max - box.x_min;
  const float height = box.y_max - box.y_min;
  const float x = deltas[0] / weights[0] * width + (box.x_min + 0.5F * width);
  const float y = deltas[1] / weights[1] * height + (box.y_min + 0.5F * height);
  const float half_width = 0.5F * (Growth(deltas[2] / weights[2]) * width);
  const float half_height = 0.5F * (Growth(deltas[3] / weights[3]) * height);
  return {x - half_width, y - half_height, x + half_width, y + half_height};
}

Box Clipped(const Box& box, Size picture) {
  const auto width = static_cast<float>(picture.width);
  const auto height = static_cast<float>(picture.height);
  return {std::clamp(box.x_min, 0.0F, width), std::clamp(box.y_min, 0.0F, height),
          std::clamp(box.x_max, 0.0F, width), std::clamp(box.y_max, 0.0F, height)};
}

bool IsAtLeast(const Box& box, float side) {
  return box.x_max - box.x_min >= side && box.y_max - box.y_min >= side;
}

Box Resized(const Box& box, Size scaled, Size sent) {
  const float x = static_cast<float>(sent.width) / static_cast<float>(scaled.width);
  const float y = static_cast<float>(sent.height) / static_cast<float>(scaled.height);
  return Clipped({box.x_min * x, box.y_min * y, box.x_max * x, box.y_max * y}, sent);
}

}  // namespace saccade::models
