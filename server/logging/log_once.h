// Log lines about what does not change while the daemon runs, and which many models would otherwise repeat.
#pragma once

#include <initializer_list>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/logging/log.h"

namespace saccade::server {

// Thread-safe.
class LogOnce {
 public:
  // Logs the line, unless one with the same message was logged before, whatever its fields were.
  void Warn(const std::string& message, std::initializer_list<LogField> fields) {
    {
      absl::MutexLock lock(&mutex_);
      if (!logged_.insert(message).second) return;
    }
    Log(LogLevel::kWarning, message, fields);
  }

 private:
  absl::Mutex mutex_;
  std::set<std::string> logged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
