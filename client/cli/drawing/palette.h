// Colours of classes, the same in every picture.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>

namespace saccade::client {

// Returns blue, green, red: a bright colour for lines on a photograph, very different for neighbouring
// indices. Objects of one class have different shades of it, so that two that touch can be told apart: `nth`
// is 0 for the first one, whose shade is the class's own colour.
cv::Scalar BrightColor(int64_t class_index, int nth = 0);

// Returns blue, green, red as Pascal VOC colours its label maps; class 0 is black.
cv::Vec3b VocColor(uint8_t class_index);

// Returns dark or light, whichever is easier to read on `background`.
cv::Scalar TextColorOn(const cv::Scalar& background);

}  // namespace saccade::client
