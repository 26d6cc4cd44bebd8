#include "server/repository/settling.h"

#include <algorithm>
#include <iterator>

namespace saccade::server {

void Settling::Applied(const std::string& model, const ModelStamp& stamp) {
  models_.try_emplace(model, std::nullopt).first->second.Use(stamp);
}

std::vector<std::string> Settling::Look(const Stamps& seen) {
  for (const auto& [name, stamp] : seen) models_.try_emplace(name, std::nullopt);
  std::vector<std::string> settled;
  for (auto model = models_.begin(); model != models_.end();) {
    auto& [name, change] = *model;
    const auto found = seen.find(name);
    const bool is_there = found != seen.end();
    if (change.Look(is_there ? std::optional(found->second) : std::nullopt)) settled.push_back(name);
    // A model that disappeared before it was applied begins anew if it comes back.
    model = is_there || change.in_use() ? std::next(model) : models_.erase(model);
  }
  return settled;
}

bool Settling::empty() const {
  return std::none_of(models_.begin(), models_.end(),
                      [](const auto& model) { return model.second.in_use().has_value(); });
}

}  // namespace saccade::server
