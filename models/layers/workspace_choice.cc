#include "models/layers/workspace_choice.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

namespace saccade::models {
namespace {

constexpr int64_t kUnknownBytes = std::numeric_limits<int64_t>::max();

// Returns the bytes that a call allocates beside its result, or kUnknownBytes if it throws.
int64_t BytesBesideResult(const LayerFunction& way, const std::function<int64_t()>& allocated) {
  try {
    way();
    int64_t least = kUnknownBytes;
    for (int call = 0; call < 2; ++call) {
      const int64_t before = allocated();
      const at::Tensor result = way();
      least = std::min(least, allocated() - before - static_cast<int64_t>(result.nbytes()));
    }
    return least;
  } catch (const std::exception&) {
    // The layer's own call reports the error if no way is without one.
    return kUnknownBytes;
  }
}

}  // namespace

size_t WayWithin(int64_t bound, const std::vector<LayerFunction>& ways,
                 const std::function<int64_t()>& allocated) {
  size_t best = 0;
  int64_t least = kUnknownBytes;
  for (size_t way = 0; way < ways.size(); ++way) {
    const int64_t bytes = BytesBesideResult(ways[way], allocated);
    if (bytes <= bound) return way;
    if (bytes < least) {
      least = bytes;
      best = way;
    }
  }
  return best;
}

size_t WorkspaceChoice::Get(at::IntArrayRef shape, const std::function<size_t()>& choose) {
  const std::lock_guard lock(mutex_);
  std::vector<int64_t> key = shape.vec();
  if (const auto found = ways_.find(key); found != ways_.end()) return found->second;
  const size_t way = choose();
  if (ways_.size() >= kMaxShapes) ways_.clear();
  ways_.emplace(std::move(key), way);
  return way;
}

}  // namespace saccade::models
