#include "server/quantize/spread.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace saccade::server {

std::vector<size_t> TakeSpread(std::vector<size_t>& positions, size_t count) {
  const size_t there = positions.size();
  const size_t taking = std::min(count, there);
  std::vector<size_t> taken;
  for (size_t i = 0; i < taking; ++i) taken.push_back(positions[(2 * i + 1) * there / (2 * taking)]);
  std::vector<size_t> left;
  std::set_difference(positions.begin(), positions.end(), taken.begin(), taken.end(),
                      std::back_inserter(left));
  positions = std::move(left);
  return taken;
}

}  // namespace saccade::server
