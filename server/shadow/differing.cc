#include "server/shadow/differing.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace saccade::server {

void Differing::Add(Disagreement found) {
  found.number = ++added_;
  const auto weight = [](const Disagreement& one) {
    return one.difference.value_or(std::numeric_limits<double>::infinity());
  };
  const auto place = std::upper_bound(
      worst_.begin(), worst_.end(), found,
      [&](const Disagreement& one, const Disagreement& other) { return weight(one) > weight(other); });
  if (place == worst_.end() && worst_.size() == kMax) return;
  worst_.insert(place, std::move(found));
  if (worst_.size() > kMax) worst_.pop_back();
}

}  // namespace saccade::server
