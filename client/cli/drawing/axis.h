// Positions and labels of an axis's ticks.
#pragma once

#include <functional>
#include <string>

namespace saccade::client {

// Calls `tick` with the position and the label of each tick between `min` and `max`. Ticks are multiples
// of 1, 2 or 5 times a power of ten, chosen so that there are about `count`. REQUIRES: min < max.
void ForTicks(double min, double max, int count,
              const std::function<void(double at, const std::string& text)>& tick);

}  // namespace saccade::client
