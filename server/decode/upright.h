// Turns pictures upright, by their EXIF orientation.
#pragma once

#include <opencv2/core.hpp>
#include <string_view>

namespace saccade::server {

// The orientation, 1 to 8, that EXIF data give; 1 if they give none, or are damaged. `exif` begins with its
// byte order.
int ExifOrientation(std::string_view exif);

// `orientation` as in EXIF. Sides are swapped from 5 on.
void TurnUpright(cv::Mat& picture, int orientation);

}  // namespace saccade::server
