#include "server/catalog/pinned_cores.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace saccade::server {

std::shared_ptr<const CoreRange> PinnedCores::Take(int count) {
  const auto core = [this](int index) { return static_cast<size_t>(index % cores_); };
  // By core, how many ranges hold it.
  std::vector<int> holders(static_cast<size_t>(cores_));
  std::erase_if(taken_, [](const auto& range) { return range.expired(); });
  for (const auto& taken : taken_) {
    const auto range = taken.lock();
    if (range == nullptr) continue;
    for (int i = 0; i < std::min(range->count, cores_); ++i) ++holders[core(range->first + i)];
  }
  int best = 0;
  int fewest = std::numeric_limits<int>::max();
  for (int first = 0; first < cores_; ++first) {
    int held = 0;
    for (int i = 0; i < std::min(count, cores_); ++i) held += holders[core(first + i)];
    if (held >= fewest) continue;
    fewest = held;
    best = first;
  }
  auto range = std::make_shared<const CoreRange>(CoreRange{.first = best, .count = count});
  taken_.push_back(range);
  return range;
}

}  // namespace saccade::server
