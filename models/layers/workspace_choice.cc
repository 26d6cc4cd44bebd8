#include "models/layers/workspace_choice.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "models/device/out_of_memory.h"

namespace saccade::models {
namespace {

constexpr int64_t kUnknownBytes = std::numeric_limits<int64_t>::max();

// Returns the bytes that a call allocates beside its result, or kUnknownBytes if it throws. Sets
// `lacked_memory` if memory was insufficient.
int64_t BytesBesideResult(const LayerFunction& way, const std::function<int64_t()>& allocated,
                          bool& lacked_memory) {
  try {
    way();
    int64_t least = kUnknownBytes;
    for (int call = 0; call < 2; ++call) {
      const int64_t before = allocated();
      const at::Tensor result = way();
      least = std::min(least, allocated() - before - static_cast<int64_t>(result.nbytes()));
    }
    return least;
  } catch (const std::exception& error) {
    if (IsOutOfMemory(error)) lacked_memory = true;
    // The layer's own call reports the error if no way is without one.
    return kUnknownBytes;
  }
}

}  // namespace

WayChoice WayWithin(int64_t bound, const std::vector<LayerFunction>& ways,
                    const std::function<int64_t()>& allocated) {
  WayChoice best;
  bool lacked_memory = false;
  int64_t least = kUnknownBytes;
  for (size_t way = 0; way < ways.size(); ++way) {
    const int64_t bytes = BytesBesideResult(ways[way], allocated, lacked_memory);
    best.settled = !lacked_memory;
    if (bytes < least) {
      least = bytes;
      best.way = way;
      best.ran = true;
    }
    if (bytes <= bound) return best;
  }
  return best;
}

size_t WorkspaceChoice::Get(at::IntArrayRef shape, const std::function<WayChoice()>& choose) {
  const std::lock_guard lock(mutex_);
  std::vector<int64_t> key = shape.vec();
  const auto found = ways_.find(key);
  if (found == ways_.end()) {
    const WayChoice choice = choose();
    if (ways_.size() >= kMaxShapes) ways_.clear();
    ways_.emplace(std::move(key), Chosen{choice, 1});
    return choice.way;
  }
  Chosen& chosen = found->second;
  if (!chosen.choice.settled && chosen.choices < kMaxChoices) {
    const WayChoice again = choose();
    // If memory is shorter still, a way that ran once is better than the first one.
    if (again.ran || !chosen.choice.ran) chosen.choice = again;
    ++chosen.choices;
  }
  return chosen.choice.way;
}

}  // namespace saccade::models
