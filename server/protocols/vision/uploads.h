// The Restore calls whose volumes have not arrived completely.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace saccade::server {

class RestoreStream;

// Ends uploads that take too long: they hold places that others could use. Thread-safe.
class Uploads {
 public:
  void Add(std::shared_ptr<RestoreStream> stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(RestoreStream* stream) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the uploads that are late at `now` (RestoreStream::EndIfLate). Call regularly.
  void Sweep(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all uploads with `status`, and those that are added later.
  void EndAll(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::vector<std::shared_ptr<RestoreStream>> All() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  // std::map, because Abseil's tables are broken after an allocation that fails while they grow.
  std::map<RestoreStream*, std::weak_ptr<RestoreStream>> streams_ ABSL_GUARDED_BY(mutex_);
  // Not OK once EndAll() was called.
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
