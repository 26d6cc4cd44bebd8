// Where an axis has its ticks, and how they are written.
#pragma once

#include <functional>
#include <string>

namespace saccade::client {

// Calls `tick` for every multiple of 1, 2 or 5 times a power of ten between `least` and `most`, the smallest
// such that there are about `count` of them, with its text. REQUIRES: least < most.
void ForTicks(double least, double most, int count,
              const std::function<void(double at, const std::string& text)>& tick);

}  // namespace saccade::client
