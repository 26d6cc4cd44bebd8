#include "models/api/attention_probe.h"

#include <algorithm>
#include <utility>

namespace saccade::models {
namespace {

// Maximum values in the maps of one sample: 32 MiB of floats.
constexpr int64_t kMaxValuesPerSample = int64_t{8} << 20;

thread_local AttentionProbe* current = nullptr;

}  // namespace

AttentionProbe::AttentionProbe(std::vector<std::optional<ExplanationWish>> wishes)
    : wishes_(std::move(wishes)), taken_(wishes_.size()) {}

AttentionProbe* AttentionProbe::Current() { return current; }

AttentionProbe::Scope::Scope(AttentionProbe* probe) : before_(std::exchange(current, probe)) {}

AttentionProbe::Scope::~Scope() { current = before_; }

void AttentionProbe::StartAt(size_t item) {
  if (current != nullptr) current->first_ = item;
}

int64_t AttentionProbe::Wanted(const std::string& layer, size_t sample, int64_t available,
                               int64_t values) const {
  const size_t item = first_ + sample;
  if (item >= wishes_.size() || !wishes_[item] || wishes_[item]->layer != layer) return 0;
  const int64_t fitting = std::max<int64_t>(1, kMaxValuesPerSample / std::max<int64_t>(1, values));
  return std::min({wishes_[item]->max_maps, available, fitting});
}

const std::vector<MapPosition>& AttentionProbe::PositionsOf(size_t sample) const {
  return wishes_.at(first_ + sample).value().positions;
}

void AttentionProbe::Take(size_t sample, Explanation explanation) {
  taken_.at(first_ + sample) = std::move(explanation);
}

std::optional<Explanation> AttentionProbe::TakeOut(size_t item) {
  return std::exchange(taken_.at(item), std::nullopt);
}

}  // namespace saccade::models
