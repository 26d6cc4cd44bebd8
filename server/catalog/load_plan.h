// Plans model loads and unloads: which loads may run at the same time, which models to unload to free memory,
// and which because they are idle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace saccade::server {

struct LoadedModel {
  std::string name;
  int64_t bytes = 0;
  absl::Time last_used = absl::InfinitePast();
  // Never unloaded by these rules.
  bool is_kept = false;
};

// Returns the models to unload, so that `bytes` more fit into `max` beside the `held` bytes of all models:
// the least recently used first, and no more than are needed. `others` are all models but the one that needs
// the room. FAILED_PRECONDITION if the room cannot be made.
absl::StatusOr<std::vector<std::string>> PlanUnloads(std::vector<LoadedModel> others, int64_t held,
                                                     int64_t bytes, int64_t max);

// Maximum number of loads that run at the same time on so many cores: one for each, and at most 16.
size_t MaxLoads(int cores);

// The loads that run, and the memory that is reserved for them. Not thread-safe.
class RunningLoads {
 public:
  // At most `max` loads run at the same time, and at least one may.
  explicit RunningLoads(size_t max) : max_(max > 0 ? max : 1) {}

  // Whether a load may begin beside those that run. `alone`: none may run beside it, because it is measured.
  bool MayBegin(bool alone) const;
  bool IsRunning(const std::string& model) const { return loads_.count(model) > 0; }
  bool empty() const { return loads_.empty(); }
  // Sum of the memory of the loads that run.
  int64_t reserved() const;

  // REQUIRES: MayBegin(alone), and no load of the model runs.
  void Begin(const std::string& model, int64_t bytes, bool alone);
  // Does nothing if no load of the model runs.
  void End(const std::string& model) { loads_.erase(model); }

 private:
  struct Load {
    int64_t bytes = 0;
    bool alone = false;
  };

  const size_t max_;
  std::map<std::string, Load> loads_;
};

struct LoadPlan {
  // The load has to wait until another one has ended. Nothing is unloaded for it until then.
  bool waits = false;
  // The models to unload before the load begins.
  std::vector<std::string> unload;
};
// Plans the load of a model that is expected to hold `bytes`, as PlanUnloads() does. The loads that run count
// as if their models held their memory already. FAILED_PRECONDITION if there is no room even without them.
absl::StatusOr<LoadPlan> PlanLoad(const RunningLoads& running, std::vector<LoadedModel> others, int64_t held,
                                  int64_t bytes, int64_t max, bool alone);

struct IdlePlan {
  // Models that were not used for the given time.
  std::vector<std::string> unload;
  // When to look again.
  absl::Time next = absl::InfiniteFuture();
};
IdlePlan PlanIdle(const std::vector<LoadedModel>& loaded, absl::Duration idle_unload, absl::Time now);

}  // namespace saccade::server
