// Maps what a detector found in its input to the picture as it was sent. Does not include LibTorch.
#pragma once

#include "models/api/placement.h"
#include "models/described/picture_program.h"
#include "models/tasks/result.h"

namespace saccade::models {

// Maps positions in the network's input to the picture as it was sent. `placement` must outlive this object.
class ToSent {
 public:
  ToSent(const PictureProgram& program, const Placement& placement);

  // Positions in pixels of the input.
  float PixelX(float x) const { return (x - static_cast<float>(placement_.left)) * x_ratio_; }
  float PixelY(float y) const { return (y - static_cast<float>(placement_.top)) * y_ratio_; }

  // Positions as the program's outputs have them.
  float X(float x) const { return PixelX(x * x_unit_); }
  float Y(float y) const { return PixelY(y * y_unit_); }

  // Moves a box and its keypoints, and clips the box to the picture.
  void Move(Detection& one) const;

 private:
  const Placement& placement_;
  float x_unit_ = 1;
  float y_unit_ = 1;
  float x_ratio_ = 1;
  float y_ratio_ = 1;
};

}  // namespace saccade::models
