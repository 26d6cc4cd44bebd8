// Divides the cores among models whose instances are pinned.
#pragma once

#include <memory>
#include <vector>

namespace saccade::server {

// Cores of one model's instances, as indices into the cores available. Begins again at 0 beyond the last one.
struct CoreRange {
  int first = 0;
  int count = 0;
};

// Not thread-safe, but the ranges may be dropped on any thread.
class PinnedCores {
 public:
  // REQUIRES: cores > 0.
  explicit PinnedCores(int cores) : cores_(cores) {}

  // The first `count` adjacent cores that no range holds, or if there are none, the first of those that
  // fewest ranges hold. They are given back when the last reference to the range is dropped. REQUIRES: count
  // > 0.
  std::shared_ptr<const CoreRange> Take(int count);

 private:
  const int cores_;
  std::vector<std::weak_ptr<const CoreRange>> taken_;
};

}  // namespace saccade::server
