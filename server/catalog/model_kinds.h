// Measurements that were made while a model was loaded, and are reused for other models of the same kind.
// Models of one kind differ only in the values of their weights, which affect neither the time of a pass nor
// the memory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/repository/model_settings.h"
#include "server/repository/repository.h"

namespace saccade::server {

struct MeasuredKind {
  struct Pass {
    int64_t bucket = 0;
    int64_t size = 0;
    absl::Duration took;
  };
  // Threads used by one forward pass, and how many instances compute at the same time.
  int threads = 1;
  int instances = 1;
  // The passes of the warm-up, in the order in which they were learned.
  std::vector<Pass> passes;
  // Memory that the model holds.
  int64_t bytes = 0;
};

// Size of a version's weights in bytes; 0 if there are none. Blocks on the file system.
int64_t WeightsBytes(const ModelVersion& version);

// Returns the kind of one of our own networks on the CPU, as text: everything that affects its cost except
// the values of its weights. Empty for other models, whose cost does not follow from the configuration.
std::string KindOf(const ModelSettings& settings, const ModelVersion& version, int max_threads);

// Thread-safe.
class ModelKinds {
 public:
  // Called with all kinds when one was added, one call at a time.
  using Save = std::function<void(const std::map<std::string, MeasuredKind>&)>;

  ModelKinds() = default;
  // Begins with what was measured earlier. `save` may be null.
  ModelKinds(std::map<std::string, MeasuredKind> kinds, Save save)
      : save_(std::move(save)), kinds_(std::move(kinds)) {}

  std::optional<MeasuredKind> Find(const std::string& kind) const;
  // Replaces earlier measurements of the kind. Ignored if `kind` is empty or there are too many kinds. Blocks
  // as `save` does.
  void Keep(const std::string& kind, MeasuredKind measured);

 private:
  static constexpr size_t kMaxKinds = 1024;

  const Save save_ = nullptr;
  // Held while `save_` runs; taken before mutex_.
  absl::Mutex save_mutex_;
  mutable absl::Mutex mutex_;
  std::map<std::string, MeasuredKind> kinds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
