#include "client/cli/drawing/palette.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "client/cli/drawing/canvas.h"

namespace saccade::client {

cv::Scalar BrightColor(int64_t class_index, int nth) {
  struct Shade {
    double turn, saturation, value;
  };
  constexpr Shade kShades[] = {
      {0, 0.78, 255}, {0.07, 0.5, 255}, {-0.07, 0.85, 190}, {0.12, 0.85, 225}, {-0.12, 0.55, 255}};
  const Shade& shade = kShades[nth % static_cast<int>(std::size(kShades))];
  // Golden-ratio steps keep the hues of nearby indices far apart.
  const double turn = 0.57 + static_cast<double>(class_index % 1000) * 0.618033988749895 + shade.turn;
  const double hue = 6 * (turn - std::floor(turn));
  const auto channel = [&](double offset) {
    const double at = std::fmod(offset + hue, 6);
    return shade.value * (1 - shade.saturation * std::max(0.0, std::min({at, 4 - at, 1.0})));
  };
  return {channel(1), channel(3), channel(5)};
}

cv::Vec3b VocColor(uint8_t class_index) {
  // The bits of the index, three at a time, become the channels' bits from the highest down.
  cv::Vec3b color(0, 0, 0);
  for (int shift = 7, rest = class_index; rest != 0; --shift, rest >>= 3) {
    for (int channel = 0; channel < 3; ++channel) {
      color[2 - channel] |= static_cast<uchar>(((rest >> channel) & 1) << shift);
    }
  }
  return color;
}

cv::Scalar TextColorOn(const cv::Scalar& background) {
  const double luma = 0.114 * background[0] + 0.587 * background[1] + 0.299 * background[2];
  return luma > 140 ? kDark : kLight;
}

}  // namespace saccade::client
