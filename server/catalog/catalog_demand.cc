// What models the catalog loads and unloads without an order: those that requests wait for, those whose last
// load failed, and those that make room for others or are not used.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/catalog/catalog.h"
#include "server/catalog/load_plan.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// How long loads wait for the memory of models that were unloaded and are still in use, counted from when the
// last of these was unloaded. Many loads thus wait for a pass that hangs no longer than one does.
constexpr absl::Duration kMaxWaitForRoom = absl::Seconds(30);

}  // namespace

std::string Catalog::NotLoaded() const {
  return options_.load_on_demand ? "not loaded; a request loads it" : "not loaded";
}

bool Catalog::AwaitModel(const CallHead& call, Resume& resume) const {
  if (!table_.IsCold(call.model)) return false;
  load_queue_->Await(call, std::move(resume));
  // If the model was loaded meanwhile, those that waited for it may have been resumed before this one.
  if (!table_.IsCold(call.model)) load_queue_->Loaded(call.model, absl::ZeroDuration());
  return true;
}

void Catalog::WantModel(const CallHead& call) const {
  if (table_.IsCold(call.model)) load_queue_->Want(call);
}

std::vector<LoadedModel> Catalog::LoadedModels() const {
  const std::vector<std::string> hosted = host_.Hosted();
  // The models of ensembles' steps.
  std::set<std::string> parts(parts_in_load_.begin(), parts_in_load_.end());
  for (const std::string& name : hosted) {
    for (std::string& part : host_.PartsOf(name)) parts.insert(std::move(part));
  }
  std::vector<LoadedModel> loaded;
  loaded.reserve(hosted.size());
  for (const std::string& name : hosted) {
    const bool is_kept = !options_.load_on_demand || IsWanted(name) || parts.count(name) > 0;
    loaded.push_back({name, host_.MemoryOf(name), host_.LastUsed(name), is_kept});
  }
  return loaded;
}

void Catalog::ResumeServed() {
  for (const std::string& name : load_queue_->WantedModels()) {
    if (!table_.IsCold(name)) load_queue_->Loaded(name, absl::ZeroDuration());
  }
}

absl::Status Catalog::MakeRoom(const std::string& name, int64_t bytes) {
  const int64_t max = options_.max_model_bytes;
  // At the start, models are loaded ahead that no order or request has asked for.
  int64_t held = host_.MemoryHosted() + std::max(running_.reserved(), host_.MemoryAhead(name));
  // A model that is loaded already waits for no memory: see HasRoom().
  const int64_t leaving = bytes > 0 && IsRoomLate() ? host_.MemoryLeaving() : 0;
  if (max == 0 || held + leaving + bytes <= max) return absl::OkStatus();
  std::vector<LoadedModel> others = LoadedModels();
  std::erase_if(others, [&](const LoadedModel& other) { return other.name == name; });
  auto plan = PlanUnloads(others, held + leaving, bytes, max);
  if (!plan.ok() && loading_.empty() && host_.MemoryAhead(name) > 0) {
    // Their turn comes after this model's.
    host_.DropAllAhead(name);
    held = host_.MemoryHosted() + running_.reserved();
    plan = PlanUnloads(others, held + leaving, bytes, max);
  }
  if (!plan.ok()) {
    const bool is_held = leaving > 0 && PlanUnloads(std::move(others), held, bytes, max).ok();
    return is_held ? StillHeld(bytes) : plan.status();
  }
  for (const std::string& other : *plan) UnloadIdle(other, "its memory is needed");
  return absl::OkStatus();
}

bool Catalog::HasRoom(const std::string& name, int64_t bytes) const {
  const int64_t max = options_.max_model_bytes;
  if (max == 0 || bytes == 0 || host_.MemoryLeaving() == 0) return true;
  const int64_t reserved = std::max(running_.reserved(), host_.MemoryAhead(name));
  return host_.MemoryInUse() + reserved + bytes <= max;
}

absl::Time Catalog::RoomDeadline() const { return host_.LastLeft() + kMaxWaitForRoom; }

bool Catalog::IsRoomLate(absl::Time give_up) const {
  return host_.MemoryLeaving() > 0 && clock_->Now() >= std::min(give_up, RoomDeadline());
}

absl::Status Catalog::StillHeld(int64_t bytes) const {
  return absl::UnavailableError(
      absl::StrCat("needs about ", bytes, " bytes of memory, but ", host_.MemoryLeaving(),
                   " are still held by models that were unloaded and compute requests; try again later"));
}

absl::Status Catalog::AwaitRoom(const std::string& name, int64_t bytes) {
  while (!HasRoom(name, bytes)) {
    if (refusing()) return Closing();
    const absl::Time give_up = RoomDeadline();
    if (clock_->Now() >= give_up) {
      // Other models are unloaded instead. If they are in use, their own time to end follows.
      if (absl::Status room = MakeRoom(name, bytes); !room.ok()) return room;
      if (!HasRoom(name, bytes) && clock_->Now() >= RoomDeadline()) return StillHeld(bytes);
      continue;
    }
    ReportChanges();
    {
      absl::MutexLock lock(&orders_->mutex);
      Orders* const orders = orders_.get();
      const auto may_go_on = [orders] {
        orders->mutex.AssertHeld();
        return orders->released || orders->refusing;
      };
      clock_->AwaitUntil(&orders_->mutex, absl::Condition(&may_go_on),
                         std::min(give_up, host_.NextDeadline()));
      orders_->released = false;
    }
    FreeUnused();
    host_.ReportLate(clock_->Now());
  }
  return absl::OkStatus();
}

// What the model holds counts until the requests that found it have ended.
void Catalog::UnloadIdle(const std::string& name, absl::string_view why) {
  Log(LogLevel::kInfo, "unloading model", {{"model", name}, {"reason", std::string(why)}});
  host_.Dismiss(name, NotLoaded(), absl::InfiniteFuture(), [](const absl::Status&) {});
  FreeUnused();
}

void Catalog::FreeUnused() {
  if (!host_.FreeUnused()) return;
  memory_in_use_ = host_.MemoryInUse();
  // There may be room for the next load now.
  next_waits_ = false;
  again_ = again_ || next_.has_value();
}

absl::Time Catalog::UnloadIdle() {
  if (options_.idle_unload == absl::InfiniteDuration()) return absl::InfiniteFuture();
  const IdlePlan plan = PlanIdle(LoadedModels(), options_.idle_unload, clock_->Now());
  for (const std::string& name : plan.unload) UnloadIdle(name, "it was not used for --idle-unload-seconds");
  if (!plan.unload.empty()) ReportChanges();
  return plan.next;
}

void Catalog::PlanRetry(const std::string& repository, const std::string& name, const absl::Status& loaded) {
  if (loaded.ok()) return StopRetrying(name);
  // Loading was given up because the daemon ends.
  if (refusing()) return;
  Retry& retry = retries_[name];
  retry.repository = repository;
  const absl::Duration pause = retry.backoff.Next();
  // While models that were unloaded hold memory, the load may fail because of them.
  const bool may_lack_room = options_.max_model_bytes > 0 && host_.MemoryLeaving() > 0;
  if (retry.backoff.is_spent() && !may_lack_room) {
    table_.SetRetry(name, absl::StrCat("; given up after ", retry.backoff.failures(), " attempts"));
    Log(LogLevel::kError, "gives up loading the model",
        {{"model", name},
         {"attempts", retry.backoff.failures()},
         {"expected", "files that change (--model-control-mode=poll), an order to load it, or a restart"}});
    retries_.erase(name);
    return;
  }
  retry.at = clock_->Now() + pause;
  const std::string next = retry.backoff.is_spent() ? "another attempt"
                                                    : absl::StrCat("attempt ", retry.backoff.failures() + 1,
                                                                   " of ", Backoff::kMaxAttempts);
  table_.SetRetry(name, absl::StrCat("; ", next, " follows within ", absl::FormatDuration(pause)));
  Log(LogLevel::kWarning, "the model will be loaded again",
      {{"model", name}, {"attempt", retry.backoff.failures() + 1}, {"after", pause}});
}

void Catalog::StopRetrying(const std::string& name) {
  retries_.erase(name);
  if (next_ && next_->is_retry && next_->name == name) next_.reset();
  table_.SetRetry(name, "");
}

}  // namespace saccade::server
