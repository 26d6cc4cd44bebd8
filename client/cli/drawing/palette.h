// A colour for each class, the same in every picture.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>

namespace saccade::client {

// Blue, green, red. Bright and far apart for neighbouring indices: for lines on a photograph.
cv::Scalar BrightColor(int64_t class_index);

// Blue, green, red, as Pascal VOC colours its label maps; class 0 is black.
cv::Vec3b VocColor(uint8_t class_index);

// Dark or light, whichever is easier to read on `background`.
cv::Scalar TextColorOn(const cv::Scalar& background);

}  // namespace saccade::client
