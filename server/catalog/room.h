// Which models are unloaded where requests load them again: to make room for another, and those that are not
// used.
#pragma once

#include <cstdint>
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
absl::StatusOr<std::vector<std::string>> PlanRoom(std::vector<LoadedModel> others, int64_t held,
                                                  int64_t bytes, int64_t max);

struct IdlePlan {
  // Models that were not used for the given time.
  std::vector<std::string> unload;
  // When to look again.
  absl::Time next = absl::InfiniteFuture();
};
IdlePlan PlanIdle(const std::vector<LoadedModel>& loaded, absl::Duration idle_unload, absl::Time now);

}  // namespace saccade::server
