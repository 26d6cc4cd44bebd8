// Horizontal bars for fractions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/output/console.h"

namespace saccade::client {

struct Share {
  int64_t index = 0;
  // May be empty.
  std::string label;
  // From 0 to 1.
  double fraction = 0;
};

// Prints one line per share: percentage, bar, index, label.
void PrintShares(Console& console, const std::vector<Share>& shares);

// Returns a bar of at most `width` columns; if `unicode`, with a resolution of an eighth of a column.
std::string Bar(double fraction, int width, bool unicode);

}  // namespace saccade::client
