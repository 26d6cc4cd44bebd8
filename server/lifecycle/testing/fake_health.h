// A health service for tests, in memory.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/lifecycle/readiness.h"

namespace saccade::server {

// Thread-safe. Other threads get a chance to run at every report, so that races show.
class FakeHealth {
 public:
  void Set(const std::string& service, bool serving) {
    std::this_thread::yield();
    const std::lock_guard lock(mutex_);
    reports_[service].push_back(serving);
  }
  Readiness::Publish publish() {
    return [this](const std::string& service, bool serving) { Set(service, serving); };
  }

  // The last report of each service.
  std::map<std::string, bool> all() const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, bool> all;
    for (const auto& [service, reports] : reports_) all[service] = reports.back();
    return all;
  }
  // Every report of a service, in order.
  std::vector<bool> history(const std::string& service) const {
    const std::lock_guard lock(mutex_);
    return reports_.at(service);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<bool>> reports_;
};

}  // namespace saccade::server
