// Finds the largest of many sizes that fits.
#pragma once

#include <cstdint>

namespace saccade::server {

// Returns the largest size above `least`, and up to `max`, for which `fits` is true, or `least` if there is
// none. Calls `fits` about log2(max - least) times. REQUIRES: `fits` is true for all sizes below one for
// which it is true.
template <typename Fits>
int64_t LargestFitting(int64_t least, int64_t max, const Fits& fits) {
  while (least < max) {
    const int64_t middle = max - (max - least) / 2;
    if (fits(middle)) {
      least = middle;
    } else {
      max = middle - 1;
    }
  }
  return least;
}

}  // namespace saccade::server
