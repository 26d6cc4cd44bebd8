#include "server/catalog/load_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// However many cores there are.
constexpr int kMaxLoads = 16;

}  // namespace

size_t MaxLoads(int cores) { return static_cast<size_t>(std::clamp(cores, 1, kMaxLoads)); }

absl::StatusOr<std::vector<std::string>> PlanUnloads(std::vector<LoadedModel> others, int64_t held,
                                                     int64_t bytes, int64_t max) {
  std::erase_if(others, [](const LoadedModel& other) { return other.is_kept; });
  int64_t kept = held;
  for (const LoadedModel& other : others) kept -= other.bytes;
  if (kept + bytes > max) {
    return absl::FailedPreconditionError(
        absl::StrCat("needs about ", bytes, " bytes of memory beside ", kept, " that cannot be freed, but ",
                     "--model-memory-bytes is ", max, "; raise it, or unload other models"));
  }
  std::sort(others.begin(), others.end(), [](const LoadedModel& a, const LoadedModel& b) {
    return std::tie(a.last_used, a.name) < std::tie(b.last_used, b.name);
  });
  std::vector<std::string> unload;
  for (const LoadedModel& other : others) {
    if (held + bytes <= max) break;
    // Ensembles, which hold no memory, are unloaded in their turn as well: else their parts would be kept.
    held -= other.bytes;
    unload.push_back(other.name);
  }
  return unload;
}

bool RunningLoads::MayBegin(bool alone) const {
  if (alone) return loads_.empty();
  return loads_.size() < max_ &&
         std::none_of(loads_.begin(), loads_.end(), [](const auto& load) { return load.second.alone; });
}

int64_t RunningLoads::reserved() const {
  int64_t bytes = 0;
  for (const auto& [model, load] : loads_) bytes += load.bytes;
  return bytes;
}

void RunningLoads::Begin(const std::string& model, int64_t bytes, bool alone) {
  loads_[model] = {bytes, alone};
}

absl::StatusOr<LoadPlan> PlanLoad(const RunningLoads& running, std::vector<LoadedModel> others, int64_t held,
                                  int64_t bytes, int64_t max, bool alone) {
  const bool may_begin = running.MayBegin(alone);
  const int64_t reserved = running.reserved();
  if (max == 0 || held + reserved + bytes <= max) return LoadPlan{.waits = !may_begin, .unload = {}};
  if (const auto ever = PlanUnloads(others, held, bytes, max); !ever.ok()) return ever.status();
  if (!may_begin) return LoadPlan{.waits = true, .unload = {}};
  auto room = PlanUnloads(std::move(others), held + reserved, bytes, max);
  // The room is there once loads that run have ended: their models can then be unloaded, or have failed.
  if (!room.ok()) return LoadPlan{.waits = true, .unload = {}};
  return LoadPlan{.waits = false, .unload = *std::move(room)};
}

IdlePlan PlanIdle(const std::vector<LoadedModel>& loaded, absl::Duration idle_unload, absl::Time now) {
  IdlePlan plan;
  for (const LoadedModel& model : loaded) {
    if (model.is_kept) continue;
    const absl::Time due = model.last_used + idle_unload;
    if (due > now) {
      plan.next = std::min(plan.next, due);
      continue;
    }
    plan.unload.push_back(model.name);
    // The models of an ensemble's steps may follow it.
    plan.next = now;
  }
  return plan;
}

}  // namespace saccade::server
