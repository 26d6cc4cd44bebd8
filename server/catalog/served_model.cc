#include "server/catalog/served_model.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/device/use_threads.h"
#include "server/catalog/cores.h"
#include "server/core/idle_thread.h"
#include "server/core/inline_passes.h"
#include "server/core/physical_cores.h"
#include "server/core/usable_cores.h"
#include "server/engine/device_lost.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// How long a thread that submitted a request continues to compute tiny batches of other requests.
constexpr absl::Duration kMaxLentTime = absl::Milliseconds(1);

absl::Status GpuLost() {
  absl::Status lost =
      absl::UnavailableError("the GPU has failed, so this server will exit; try another replica");
  SetDeviceLost(lost);
  return lost;
}

Devices DevicesOf(const ModelSettings& settings) {
  return settings.gpus.empty() ? Devices(settings.instances) : settings.gpus;
}

}  // namespace

bool IsShadow(const ServedModelOptions& options) {
  return options.settings.shadow && options.settings.shadow->version == options.version.version;
}

int MaxInstances(const ServedModelOptions& options) {
  const ModelSettings& settings = options.settings;
  if (settings.has_instances || !settings.gpus.empty()) return settings.instances;
  if (settings.optimize) return std::max(1, options.cores);
  const bool fill = options.fewer_threads && !settings.pin && !IsShadow(options);
  return fill ? std::min(kMaxFillingInstances, options.threads_per_instance) : settings.instances;
}

bool IsTried(const ServedModelOptions& options) {
  const ModelSettings& settings = options.settings;
  if (!settings.gpus.empty() || settings.backend == Backend::kEnsemble) return false;
  return options.fewer_threads || settings.optimize.has_value();
}

ServedModel::ServedModel(ServedModelOptions options, DeviceGroup* group, Clock* clock, Metrics* metrics)
    : options_(std::move(options)),
      group_(group),
      clock_(clock),
      all_metrics_(metrics),
      answer_order_(options_.settings.preserve_ordering ? std::make_unique<AnswerOrder>() : nullptr),
      ensemble_(options_.settings.backend == Backend::kEnsemble
                    ? std::make_shared<const Ensemble>(options_.settings, options_.version.version)
                    : nullptr),
      devices_(DevicesOf(options_.settings)),
      threads_(options_.threads_per_instance),
      busy_since_(std::max(devices_.size(), static_cast<size_t>(MaxInstances(options_)))),
      lost_(busy_since_.size()) {}

ServedModel::~ServedModel() { Close(); }

void ServedModel::StartInstances() {
  metrics_->SetInstances(static_cast<int64_t>(devices_.size()));
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < devices_.size(); ++i) {
    instances_.emplace_back([this, i] { RunInstance(static_cast<int>(i)); });
  }
}

void ServedModel::KeepToOwnCores(int index) const {
  const int threads = options_.threads_per_instance;
  const std::vector<int> processors = ProcessorsOfCores(ReadPhysicalCores(AllowedProcessors()),
                                                        options_.pinned_to->first + index * threads, threads);
  if (absl::Status kept = KeepToProcessors(processors); !kept.ok()) {
    Log(LogLevel::kWarning, "instance not pinned",
        {{"model", name()}, {"instance", index}, {"reason", std::string(kept.message())}});
  }
}

const MemoryNode* ServedModel::NodeOf(int index) const {
  const std::optional<size_t> node = NodeOfInstance(
      options_.nodes, {.instances = devices_.size(), .threads = threads_, .first_node = options_.first_node},
      index);
  return node ? &options_.nodes[*node] : nullptr;
}

void ServedModel::KeepToNode(int index) const {
  const MemoryNode* const node = NodeOf(index);
  if (node == nullptr) return;
  if (absl::Status kept = KeepToProcessors(node->processors); !kept.ok()) {
    Log(LogLevel::kWarning, "instance not kept to a node of memory",
        {{"model", name()}, {"instance", index}, {"reason", std::string(kept.message())}});
  }
}

void ServedModel::RunInstance(int index) {
  pthread_setname_np(pthread_self(), absl::StrCat("instance-", index).c_str());
  if (options_.settings.pin) {
    KeepToOwnCores(index);
  } else {
    KeepToNode(index);
  }
  // Before LibTorch starts the threads of this thread's passes, which inherit it.
  if (is_shadow()) RunOnlyWhenIdle();
  models::UseThreads(threads_);
  while (true) {
    try {
      Shares batch = queue_->Take(index);
      if (batch.empty()) return;
      Compute(index, std::move(batch), nullptr);
    } catch (const std::exception& error) {
      Log(LogLevel::kError, "an instance lost a batch",
          {{"model", name()}, {"instance", index}, {"error", absl::string_view(error.what())}});
    }
  }
}

void ServedModel::Compute(int instance, Shares batch, std::optional<TinyBatch<CallShare>>* next) {
  // A pass that reports progress does not count as hung, however long it takes.
  const auto advanced = [this, instance] {
    const int64_t now = absl::ToUnixNanos(clock_->Now());
    busy_since_[instance].store(now, std::memory_order_relaxed);
    last_used_.store(now, std::memory_order_relaxed);
  };
  advanced();
  bool batch_was_cut = false;
  int64_t bucket = 0;
  PassEnd end;
  try {
    batch = Apart(std::move(batch));
    const size_t handed_out = batch.size();
    DropDead(batch, clock_->Now());
    for (const auto& share : batch) share->EndWait();
    batch_was_cut = batch.size() != handed_out;
    if (!batch.empty()) bucket = batch[0]->bucket();
    // An answer may start another call, whose pass may run on this thread, but no further ones.
    const LimitInlinePasses limit(InlinePasses::kOwn);
    if (lost_[instance]) {
      for (auto& share : batch) end.failed.push_back({std::move(share), GpuLost()});
    } else {
      end = engines_.at(devices_[instance])->Compute(std::move(batch), clock_, metrics_.get(), advanced);
    }
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "a batch was lost",
        {{"model", name()}, {"instance", instance}, {"error", absl::string_view(error.what())}});
    // Shares that have not ended fail when they are destroyed. The instance takes the next batch.
    batch.clear();
  }
  busy_since_[instance].store(0, std::memory_order_relaxed);
  if (end.device_lost) NoteLost(instance);
  if (end.no_room_for > 0) {
    metrics_->RecordNoMemory();
    queue_->ReduceBatches(bucket, end.no_room_for);
  }
  if (!end.failed.empty()) {
    Retry(instance, std::move(end.failed), next);
  } else if (end.whole || end.part) {
    LogChanges(queue_->Finished(instance, end.whole && !batch_was_cut, next));
  } else {
    queue_->Skipped(instance, next);
  }
}

// An error that a GPU does not recover from is of all instances on it.
void ServedModel::NoteLost(int instance) {
  lost_[instance] = true;
  if (options_.settings.gpus.empty()) return;
  for (size_t other = 0; other < devices_.size(); ++other) {
    if (devices_[other] == devices_[instance]) lost_[other] = true;
  }
}

bool ServedModel::AllLost() const {
  return std::all_of(lost_.begin(), lost_.end(), [](const std::atomic<bool>& lost) { return lost.load(); });
}

void ServedModel::Retry(int instance, std::vector<FailedShare> failed,
                        std::optional<TinyBatch<CallShare>>* next) {
  Shares shares;
  try {
    shares.reserve(failed.size());
  } catch (const std::bad_alloc&) {
    queue_->Skipped(instance, next);
    for (auto& [share, why] : failed) share->FailComputed(std::move(why));
    return;
  }
  for (auto& [share, why] : failed) {
    share->NoteFailure(std::move(why));
    share->BeginWait(&waiting_requests_);
    shares.push_back(std::move(share));
  }
  // Without an instance that could compute them they are answered at once.
  Shares hopeless;
  if (AllLost()) hopeless.swap(shares);
  const bool may_be_retried = !shares.empty();
  const DeviceModel<CallShare>::Changes changes = queue_->Failed(instance, &shares, next, lost_[instance]);
  if (may_be_retried && shares.empty()) metrics_->RecordRetry();
  for (const Shares* const ended : {&shares, &hopeless}) {
    for (const auto& share : *ended) share->FailComputed(share->failure());
  }
  LogChanges(changes);
}

void ServedModel::LogChanges(const DeviceModel<CallShare>::Changes& changes) const {
  for (const auto& [instance, set_aside] : changes) {
    const std::string device =
        options_.settings.gpus.empty() ? "CPU" : absl::StrCat("GPU ", devices_[instance]);
    if (!set_aside) {
      Log(LogLevel::kInfo, "instance in service again",
          {{"model", name()}, {"version", version()}, {"instance", instance}, {"device", device}});
      continue;
    }
    Log(LogLevel::kWarning, "instance set aside",
        {{"model", name()},
         {"version", version()},
         {"instance", instance},
         {"device", device},
         {"reason", lost_[instance] ? "its GPU has failed; it takes no more batches"
                                    : "its passes failed, and other instances computed the same items; it is "
                                      "tried again with a batch from time to time"}});
  }
}

absl::Status ServedModel::Submit(std::unique_ptr<CallShare>& share) {
  share->BeginWait(&waiting_requests_);
  // Passes on GPUs, on pinned cores or on idle ones only run on their instances' threads.
  const InlinePasses here = LimitInlinePasses::Current();
  const bool elsewhere = !options_.settings.gpus.empty() || options_.settings.pin || is_shadow();
  if (elsewhere || here == InlinePasses::kNone) return queue_->Submit(share);
  std::optional<TinyBatch<CallShare>> tiny;
  absl::Status taken = queue_->Submit(share, &tiny);
  if (!tiny) return taken;
  const TimeInlinePasses time(clock_);
  // This thread may have computed for another model, or for none.
  models::UseThreads(threads_);
  const absl::Time lent_until =
      here == InlinePasses::kAny ? clock_->Now() + kMaxLentTime : absl::InfinitePast();
  while (tiny) {
    std::optional<TinyBatch<CallShare>> next;
    try {
      Compute(tiny->instance, std::move(tiny->tasks), clock_->Now() < lent_until ? &next : nullptr);
    } catch (const std::exception& error) {
      // `next` may hold a batch, which has to be computed.
      Log(LogLevel::kError, "a batch was lost", {{"error", absl::string_view(error.what())}});
    }
    tiny = std::move(next);
  }
  return taken;
}

absl::StatusOr<std::shared_ptr<ReadyModel>> ServedModel::FindShadow() const {
  auto found = options_.deps.find_version(options_.settings.shadow->version);
  if (!found.ok()) return found;
  // A promoted version goes on to answer if its new files could not be loaded.
  const std::optional<ShadowRule>& rule = (*found)->settings().shadow;
  if (rule && rule->version == (*found)->version()) return found;
  return absl::UnavailableError("the shadow version was promoted and answers requests itself");
}

const models::Description& ServedModel::description() const { return engine().description(); }

ModelSnapshot ServedModel::Snapshot() const {
  ModelSnapshot snapshot;
  snapshot.name = name();
  snapshot.version = version();
  snapshot.max_batch_size = max_batch_size();
  snapshot.description.architecture = options_.settings.architecture;
  absl::MutexLock lock(&mutex_);
  snapshot.state = state_;
  snapshot.reason = reason_;
  snapshot.load_duration = load_duration_;
  snapshot.ensemble = ensemble_ != nullptr;
  if (snapshot.ensemble) snapshot.description.architecture = NameOf(Backend::kEnsemble);
  if (state_ == ModelSnapshot::State::kReady && !snapshot.ensemble) {
    snapshot.description = description();
    snapshot.queued = queue_->queued();
    if (precision_) {
      snapshot.precision = models::PrecisionName(precision_->precision);
      snapshot.precision_reason = precision_->reason;
    }
    snapshot.identity = *identity_;
    snapshot.promotion = Promotion();
  }
  return snapshot;
}

std::optional<PromotionState> ServedModel::Promotion() const {
  if (shadow_ != nullptr) return shadow_->Promotion();
  const std::optional<server::Promotion>& kept = options_.settings.promotion;
  if (!kept || kept->shadow != version()) return std::nullopt;
  return PromotionState{.rule = kept->rule,
                        .replaces = kept->replaces,
                        .shadow = kept->shadow,
                        .promoted = kept->decision.promoted,
                        .reason = kept->decision.reason};
}

std::optional<ModelTiming> ServedModel::Timing() const {
  if (!CheckReady().ok() || ensemble_ != nullptr || is_shadow()) return std::nullopt;
  ModelTiming timing;
  timing.buckets = queue_->Learned();
  timing.instances = static_cast<int>(devices_.size());
  timing.threads = options_.settings.gpus.empty() ? threads_ : 0;
  timing.cores = group_->cores();
  timing.max_queue_size = BatchingOfQueue().max_queue_size;
  timing.model_bytes = memory_bytes();
  return timing;
}

absl::Status ServedModel::CheckReady() const {
  absl::MutexLock lock(&mutex_);
  switch (state_) {
    case ModelSnapshot::State::kReady:
      return absl::OkStatus();
    case ModelSnapshot::State::kLoading:
      return absl::UnavailableError(absl::StrCat("model '", name(), "' is still loading; try again"));
    case ModelSnapshot::State::kUnloading:
    case ModelSnapshot::State::kUnavailable:
      break;
  }
  return absl::UnavailableError(
      absl::StrCat("model '", name(), "' version ", version(), " is unavailable: ", reason_));
}

void ServedModel::RefreshGauges() {
  if (queue_ == nullptr) return;
  metrics_->AddDemand(queue_->TakeDemand());
  metrics_->SetPending(waiting_requests_);
  metrics_->SetInstancesSetAside(queue_->set_aside());
  metrics_->SetInstancesLost(std::count(lost_.begin(), lost_.end(), true));
  if (drift_ == nullptr) return;
  const DriftReport report = drift_->Report();
  drift_metrics_->Set(report.seen, report.repeated, report.drift);
}

absl::Duration ServedModel::BusyFor() const {
  absl::Duration longest = absl::ZeroDuration();
  for (const std::atomic<int64_t>& busy : busy_since_) {
    const int64_t since = busy.load(std::memory_order_relaxed);
    if (since != 0) longest = std::max(longest, clock_->Now() - absl::FromUnixNanos(since));
  }
  return longest;
}

bool ServedModel::device_lost() const {
  return std::any_of(lost_.begin(), lost_.end(), [](const std::atomic<bool>& lost) { return lost.load(); });
}

void ServedModel::SetState(ModelSnapshot::State state, std::string reason) {
  absl::MutexLock lock(&mutex_);
  state_ = state;
  reason_ = std::move(reason);
}

void ServedModel::Close() {
  std::vector<std::thread> instances;
  bool was_ready = false;
  {
    absl::MutexLock lock(&mutex_);
    instances.swap(instances_);
    was_ready = state_ == ModelSnapshot::State::kReady;
    if (was_ready) {
      state_ = ModelSnapshot::State::kUnavailable;
      reason_ = "the daemon is shutting down";
    }
  }
  // An ensemble is ready without instances; a load that failed may have started some.
  if (!was_ready && instances.empty()) return;
  if (queue_ != nullptr) queue_->Close();
  for (std::thread& instance : instances) instance.join();
  if (shadow_sender_ != nullptr) shadow_sender_->Close();
  if (cached_answers_ != nullptr) cached_answers_->Close();
  if (was_ready && !handed_over_) metrics_->SetReady(false);
}

}  // namespace saccade::server
