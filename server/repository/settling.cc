#include "server/repository/settling.h"

namespace saccade::server {

std::vector<std::string> Settling::Look(const Stamps& seen) {
  std::set<std::string> names;
  for (const auto& [name, stamp] : applied_) names.insert(name);
  for (const auto& [name, stamp] : seen) names.insert(name);
  std::vector<std::string> settled;
  for (const std::string& name : names) {
    const auto applied = applied_.find(name);
    const auto found = seen.find(name);
    const bool is_there = found != seen.end();
    if (is_there && applied != applied_.end() && applied->second == found->second) {
      changing_.erase(name);
      continue;
    }
    const std::optional<ModelStamp> now = is_there ? std::optional(found->second) : std::nullopt;
    const auto before = changing_.find(name);
    if (before != changing_.end() && before->second == now) {
      settled.push_back(name);
    } else {
      changing_[name] = now;
    }
  }
  return settled;
}

void Settling::Forget(const std::string& model) {
  applied_.erase(model);
  changing_.erase(model);
}

}  // namespace saccade::server
