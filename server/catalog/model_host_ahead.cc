// The host's loads ahead: versions of models that are loaded on threads of their own, for an Apply() that
// then only waits for them.
#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/catalog/load_plan.h"
#include "server/catalog/model_host.h"
#include "server/logging/log.h"

namespace saccade::server {

bool ModelHost::CanLoadAhead(const ModelEntry& entry) {
  if (IsHosted(entry.settings.name) || !entry.settings.gpus.empty()) return false;
  // Each version takes a thread.
  if (entry.versions.size() > 1) return false;
  return std::all_of(entry.versions.begin(), entry.versions.end(), [&](const ModelVersion& version) {
    return !version.status.ok() || KnownKind(entry.settings, version).has_value();
  });
}

bool ModelHost::LoadAhead(const ModelEntry& entry, const ModelStamp& stamp, int64_t* skipped_bytes) {
  const ModelSettings& settings = entry.settings;
  if (IsHosted(settings.name)) return true;
  for (const ModelVersion& version : entry.versions) {
    const std::pair<std::string, int64_t> key(settings.name, version.version);
    if (!version.status.ok() || ahead_.count(key) > 0) continue;
    // Reading the files of many models, whose kinds depend on them, may take long.
    if (hooks_.closed()) return false;
    const auto known = KnownKind(settings, version);
    const int64_t bytes = ExpectedOf(version, known);
    if (!known || !settings.gpus.empty()) {
      *skipped_bytes += bytes;
      continue;
    }
    const int64_t held = MemoryInUse() + MemoryAhead() + *skipped_bytes;
    if (options_.max_model_bytes > 0 && held + bytes > options_.max_model_bytes) return false;
    if (ahead_.size() >= MaxLoads(options_.cores)) return false;
    ServedModelOptions options = OptionsOf(settings, version, nullptr);
    TakeNode(&options);
    auto ahead = std::make_unique<Ahead>();
    ahead->bytes = bytes;
    ahead->stamp = stamp;
    DeviceGroup* const devices = DevicesOf(options);
    ahead->served = std::make_unique<ServedModel>(std::move(options), devices, clock_, metrics_);
    Ahead* const loads = (ahead_[key] = std::move(ahead)).get();
    try {
      loads->thread = std::thread([loads, ended = hooks_.ended_ahead, call = CurrentLogCall()]() mutable {
        pthread_setname_np(pthread_self(), "load");
        const LogCallScope scope(std::move(call));
        loads->status = Safely([loads] { return loads->served->Load(); });
        loads->has_ended = true;
        if (ended) ended();
      });
    } catch (const std::exception&) {
      // The system has no thread left, or no memory. The model is loaded in its turn.
      ahead_.erase(key);
      return false;
    }
  }
  return true;
}

std::vector<int64_t> ModelHost::AheadOf(const std::string& name) const {
  std::vector<int64_t> versions;
  for (const auto& [key, ahead] : ahead_) {
    if (key.first == name) versions.push_back(key.second);
  }
  return versions;
}

int64_t ModelHost::MemoryAhead(const std::string& except) const {
  int64_t bytes = 0;
  for (const auto& [key, ahead] : ahead_) bytes += key.first == except ? 0 : ahead->bytes;
  return bytes;
}

bool ModelHost::HasEndedAhead(const std::string& name) const {
  return std::all_of(ahead_.begin(), ahead_.end(),
                     [&](const auto& ahead) { return ahead.first.first != name || ahead.second->has_ended; });
}

void ModelHost::DropAhead(const std::string& name) {
  for (auto found = ahead_.lower_bound({name, 0}); found != ahead_.end() && found->first.first == name;
       found = ahead_.erase(found)) {
    if (found->second->thread.joinable()) found->second->thread.join();
  }
}

void ModelHost::DropAllAhead(const std::string& except) {
  std::set<std::string> names;
  for (const auto& [key, ahead] : ahead_) names.insert(key.first);
  names.erase(except);
  for (const std::string& name : names) DropAhead(name);
}

void ModelHost::AwaitAhead() {
  for (const auto& [key, ahead] : ahead_) {
    if (ahead->thread.joinable()) ahead->thread.join();
  }
}

}  // namespace saccade::server
