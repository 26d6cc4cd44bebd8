#include "models/described/to_sent.h"

#include <algorithm>
#include <cstdint>

namespace saccade::models {

ToSent::ToSent(const PictureProgram& program, const Placement& placement) : placement_(placement) {
  const bool letterbox = program.input.fit == Fit::kLetterbox;
  const auto ratio = [](int64_t sent, int64_t scaled) {
    return static_cast<float>(sent) / static_cast<float>(scaled);
  };
  x_ratio_ = ratio(placement.sent.width, placement.scaled.width);
  y_ratio_ = ratio(placement.sent.height, placement.scaled.height);
  // A letterbox has one factor for both sides, which the rounded size has not.
  const bool scaled = placement.sent != placement.scaled;
  if (letterbox && scaled)
    x_ratio_ = y_ratio_ = static_cast<float>(1 / LetterboxFactor(program.input, placement.sent));
  if (!program.head.normalized) return;
  // Fractions are those of the picture alone, unless its surroundings are part of the input.
  const Size whole = letterbox ? placement.bucket : placement.scaled;
  x_unit_ = static_cast<float>(whole.width);
  y_unit_ = static_cast<float>(whole.height);
}

void ToSent::Move(Detection& one) const {
  const auto width = static_cast<float>(placement_.sent.width);
  const auto height = static_cast<float>(placement_.sent.height);
  one.x_min = std::clamp(X(one.x_min), 0.0F, width);
  one.x_max = std::clamp(X(one.x_max), 0.0F, width);
  one.y_min = std::clamp(Y(one.y_min), 0.0F, height);
  one.y_max = std::clamp(Y(one.y_max), 0.0F, height);
  for (Keypoint& point : one.keypoints) point = {X(point.x), Y(point.y), point.score};
}

}  // namespace saccade::models
