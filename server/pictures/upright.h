// Turns pictures upright, by their EXIF orientation.
#pragma once

#include <opencv2/core.hpp>
#include <string_view>

namespace saccade::server {

// The name before the EXIF data of a JPEG's segment. Some programs write it into other formats, too.
inline constexpr std::string_view kExifName("Exif\0\0", 6);

// EXIF data without the name, if they begin with it.
std::string_view WithoutExifName(std::string_view exif);

// The orientation, 1 to 8, that EXIF data give; 1 if they give none, or are damaged. `exif` begins with its
// byte order.
int ExifOrientation(std::string_view exif);

// Whether turning a picture upright makes its last column the first one of a row or of a column; the same for
// its last row.
constexpr bool StartsWithLastColumn(int orientation) {
  return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}
constexpr bool StartsWithLastRow(int orientation) {
  return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

// `orientation` as in EXIF. Sides are swapped from 5 on.
void TurnUpright(cv::Mat& picture, int orientation);

}  // namespace saccade::server
