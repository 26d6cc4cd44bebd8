// Shares, as bars.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/console.h"

namespace saccade::client {

struct Share {
  int64_t index = 0;
  // May be empty.
  std::string label;
  // Of one.
  double fraction = 0;
};

// One line each: percentage, bar, index, label.
void PrintShares(Console& console, const std::vector<Share>& shares);

// A bar of `width` columns at most; in eighths of a column where the console takes more than ASCII.
std::string Bar(double fraction, int width, bool unicode);

}  // namespace saccade::client
