#include "server/catalog/model_host.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/device/gpu_memory.h"
#include "server/catalog/memory_nodes.h"
#include "server/core/free_memory.h"
#include "server/core/physical_cores.h"
#include "server/core/usable_cores.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

using State = ModelSnapshot::State;

// Nesting depth of ensembles down to which their parts' use counts as theirs.
constexpr int kMaxDepthOfUse = 8;
// Owners of the handle of a version that no request holds: Held and the table.
constexpr int64_t kIdleOwners = 2;
// Passes on a GPU at the same time: the second uses what the first leaves idle. Those of different models
// are on different streams; those of one model's instances are computed one after the other, but one is
// prepared while the other is computed.
constexpr int kPassesOfGpu = 2;
// Memory that a model is expected to hold once it is loaded, by the size of its weights: they are packed for
// the processor, and passes need room.
constexpr int64_t kGrowth = 2;

int ThreadsPerInstance(int asked, int cores, int instances) {
  return asked > 0 ? asked : std::max(1, cores / instances);
}

ModelSnapshot Newcomer(const ModelSettings& settings, int64_t version) {
  ModelSnapshot snapshot;
  snapshot.name = settings.name;
  snapshot.version = version;
  snapshot.max_batch_size = static_cast<int>(settings.batching.max_batch_size);
  snapshot.description.architecture = settings.architecture;
  return snapshot;
}

void LogQueueError(const char* error) {
  Log(LogLevel::kError, "a queue of requests failed", {{"error", absl::string_view(error)}});
}

}  // namespace

ModelHost::ModelHost(const CatalogOptions* options, Hooks hooks, ModelTable* table, Clock* clock,
                     Metrics* metrics)
    : options_(*options),
      hooks_(std::move(hooks)),
      table_(table),
      clock_(clock),
      metrics_(metrics),
      kinds_file_(options->state_folder, options->measured_on),
      kinds_(kinds_file_.Load(), [this](const auto& kinds) { kinds_file_.Save(kinds); }),
      cores_({.cores = options->cores}, clock, LogQueueError),
      gpus_({.cores = kPassesOfGpu}, clock, LogQueueError),
      idle_cores_({.cores = options->cores}, clock, LogQueueError),
      pinned_cores_(std::max(1, static_cast<int>(ReadPhysicalCores(AllowedProcessors()).size()))) {}

ModelHost::~ModelHost() { Close(); }

absl::Status ModelHost::Apply(ModelEntry entry, const ModelStamp& stamp, bool all_anew, Progress progress) {
  const ModelSettings& settings = entry.settings;
  for (const std::string& warning : settings.warnings)
    Log(LogLevel::kWarning, "model configuration", {{"model", settings.name}, {"warning", warning}});
  Model& model = hosted_[settings.name];
  model.parts.clear();
  for (const EnsembleStep& step : settings.ensemble) model.parts.push_back(step.model);
  ListLoading(entry);
  const int64_t shadow = settings.shadow ? settings.shadow->version : 0;
  const int64_t promoted = settings.promotion ? settings.promotion->shadow : 0;
  // Where versions serve, requests go on to be answered by the same one until all are loaded, and so do those
  // that name the label of a version that is promoted.
  const bool is_new = model.versions.empty();
  if (is_new) table_->SetAnswering(settings.name, {.promoted = promoted, .shadow = shadow});
  if (is_new || promoted == 0) MoveLabels(settings, model);
  absl::Status first;
  // The highest version is loaded first, because requests without a version use it, and a shadow version
  // last.
  std::stable_partition(entry.versions.begin(), entry.versions.end(),
                        [&](const ModelVersion& version) { return version.version == shadow; });
  for (auto version = entry.versions.rbegin(); version != entry.versions.rend(); ++version) {
    if (hooks_.closed()) return absl::CancelledError("the daemon is shutting down");
    if (!all_anew && IsSame(model, settings, *version, stamp)) continue;
    const absl::Status loaded = LoadVersion(settings, *version, stamp, progress, &model);
    if (!loaded.ok() && hooks_.closed()) return loaded;
    metrics_->RecordLoad(loaded.ok());
    if (loaded.ok()) {
      if (promoted == 0) MoveLabels(settings, model);
      continue;
    }
    NoteFailure(settings, version->version, loaded, model);
    first.Update(
        absl::FailedPreconditionError(absl::StrCat("model '", settings.name, "': ", loaded.message())));
  }
  if (first.ok()) {
    table_->SetAnswering(settings.name, {.promoted = promoted, .shadow = shadow});
    table_->SetLabels(settings.name, settings.version_labels);
    DropLeftOut(entry, &model);
  }
  AdoptDecision(settings, model);
  if (model.versions.empty()) hosted_.erase(settings.name);
  return first;
}

void ModelHost::MoveLabels(const ModelSettings& settings, const Model& model) {
  const std::map<std::string, int64_t> before = table_->Labels(settings.name);
  std::map<std::string, int64_t> labels = settings.version_labels;
  for (auto& [label, version] : labels) {
    const auto old = before.find(label);
    if (old != before.end() && model.versions.count(version) == 0 && model.versions.count(old->second) > 0)
      version = old->second;
  }
  table_->SetLabels(settings.name, std::move(labels));
}

void ModelHost::AdoptDecision(const ModelSettings& settings, const Model& model) {
  if (!settings.shadow) return;
  const auto shadow = model.versions.find(settings.shadow->version);
  // A promoted version goes on to answer if its new files could not be loaded. It is not compared.
  if (shadow == model.versions.end() || !shadow->second.loaded->model->is_shadow()) return;
  const std::shared_ptr<const ModelIdentity> load = shadow->second.loaded->model->identity();
  for (const auto& [number, version] : model.versions) {
    const std::shared_ptr<Shadow> trial = version.loaded->model->shadow();
    if (trial != nullptr) trial->Adopt(settings.shadow->decided, load);
  }
}

bool ModelHost::IsFrom(const Model& model, int64_t version, const ModelStamp& stamp) {
  const auto present = model.versions.find(version);
  const auto files = stamp.versions.find(version);
  return present != model.versions.end() && present->second.shared_stamp == stamp.shared &&
         present->second.stamp == (files == stamp.versions.end() ? "" : files->second);
}

bool ModelHost::IsLoadedFrom(const std::string& name, int64_t version, const ModelStamp& stamp) const {
  const auto model = hosted_.find(name);
  return model != hosted_.end() && IsFrom(model->second, version, stamp);
}

bool ModelHost::IsSame(const Model& model, const ModelSettings& settings, const ModelVersion& version,
                       const ModelStamp& stamp) {
  if (!IsFrom(model, version.version, stamp)) return false;
  const ServedModel& loaded = *model.versions.at(version.version).loaded->model;
  const bool is_shadow = settings.shadow && settings.shadow->version == version.version;
  if (loaded.is_shadow() != is_shadow) return false;
  // A version that was loaded while the shadow version was promoted compares nothing. The reverse is no
  // change: after a promotion, the version that was replaced keeps its comparison for the next trial.
  return !settings.shadow || is_shadow || loaded.shadow() != nullptr;
}

bool ModelHost::IsUnchanged(const ModelEntry& entry, const ModelStamp& stamp, bool all_anew) const {
  const auto model = hosted_.find(entry.settings.name);
  return model != hosted_.end() && !all_anew &&
         std::all_of(entry.versions.begin(), entry.versions.end(), [&](const ModelVersion& version) {
           return IsSame(model->second, entry.settings, version, stamp);
         });
}

void ModelHost::ListLoading(const ModelEntry& entry) {
  // Clears an earlier error of the model as a whole.
  table_->SetModel(entry.settings.name, State::kLoading, "");
  for (const ModelVersion& version : entry.versions)
    table_->SetVersion(Newcomer(entry.settings, version.version));
}

std::string ModelHost::OthersServing(const Model& model) {
  if (model.versions.empty()) return "nothing";
  const auto number = [](std::string* out, const auto& version) { absl::StrAppend(out, version.first); };
  return absl::StrCat("version ", absl::StrJoin(model.versions, ", ", number));
}

void ModelHost::NoteFailure(const ModelSettings& settings, int64_t version, const absl::Status& why,
                            const Model& model) {
  const bool serving = model.versions.count(version) > 0;
  ModelSnapshot failed = Newcomer(settings, version);
  failed.state = State::kUnavailable;
  failed.reason = std::string(why.message());
  table_->SetVersion(failed);
  Log(LogLevel::kError, "model unavailable",
      {{"model", settings.name},
       {"version", version},
       {"reason", failed.reason},
       {"serving", serving ? "the previously loaded model" : OthersServing(model)}});
  if (serving) return;
  auto& metrics = failed_[{settings.name, version}];
  if (metrics == nullptr) metrics = metrics_->ForModel(settings.name, version, "");
  metrics->SetReady(false);
}

void ModelHost::NoteFailures(const ModelEntry& entry, const ModelStamp& stamp, bool all_anew,
                             const absl::Status& why) {
  const Model& model = hosted_.at(entry.settings.name);
  for (const ModelVersion& version : entry.versions) {
    if (all_anew || !IsSame(model, entry.settings, version, stamp))
      NoteFailure(entry.settings, version.version, why, model);
  }
}

void ModelHost::DropLeftOut(const ModelEntry& entry, Model* model) {
  const std::string& name = entry.settings.name;
  const auto is_named = [&](int64_t number) {
    return std::any_of(entry.versions.begin(), entry.versions.end(),
                       [&](const ModelVersion& version) { return version.version == number; });
  };
  for (const IndexEntry& line : table_->Index()) {
    if (line.name != name || line.version == 0 || is_named(line.version)) continue;
    table_->EraseVersion(name, line.version);
    failed_.erase({name, line.version});
    const auto version = model->versions.find(line.version);
    if (version == model->versions.end()) continue;
    Log(LogLevel::kInfo, "unloading version", {{"model", name}, {"version", line.version}});
    LetGo(std::move(version->second.loaded), nullptr);
    model->versions.erase(version);
  }
}

absl::Status ModelHost::LoadVersion(const ModelSettings& settings, const ModelVersion& version,
                                    const ModelStamp& stamp, Progress progress, Model* model) {
  if (!version.status.ok()) return version.status;
  Log(LogLevel::kInfo, "loading model",
      {{"model", settings.name},
       {"version", version.version},
       {"progress", absl::StrCat(progress.number, " of ", progress.of)}});
  auto served = Loaded(settings, version, stamp, model);
  if (!served.ok()) return served.status();
  // The daemon began to end meanwhile.
  if (hooks_.closed()) return absl::CancelledError("the daemon is shutting down");
  const ModelSnapshot snapshot = (*served)->Snapshot();
  for (const std::string& note : snapshot.description.notes) {
    Log(LogLevel::kWarning, "model note",
        {{"model", snapshot.name}, {"version", snapshot.version}, {"note", note}});
  }
  Version& entered = Enter(settings.name, version.version, *std::move(served), model);
  const auto files = stamp.versions.find(version.version);
  entered.stamp = files == stamp.versions.end() ? "" : files->second;
  entered.shared_stamp = stamp.shared;
  Log(LogLevel::kInfo, "model ready",
      {{"model", snapshot.name},
       {"version", snapshot.version},
       {"architecture", snapshot.description.architecture},
       {"load_duration", snapshot.load_duration}});
  return absl::OkStatus();
}

ModelHost::Version& ModelHost::Enter(const std::string& name, int64_t number,
                                     std::unique_ptr<ServedModel> served, Model* model) {
  std::shared_ptr<Held> loaded = Hold(std::move(served));
  failed_.erase({name, number});
  table_->Serve(name, number, loaded->handle);
  Version& version = model->versions[number];
  if (version.loaded != nullptr) {
    version.loaded->model->HandOver();
    LetGo(std::move(version.loaded), nullptr);
  }
  version.loaded = std::move(loaded);
  return version;
}

absl::StatusOr<std::unique_ptr<ServedModel>> ModelHost::Loaded(const ModelSettings& settings,
                                                               const ModelVersion& version,
                                                               const ModelStamp& stamp, Model* model) {
  if (const auto found = ahead_.find({settings.name, version.version}); found != ahead_.end()) {
    const std::unique_ptr<Ahead> ahead = std::move(found->second);
    ahead_.erase(found);
    if (ahead->thread.joinable()) ahead->thread.join();
    if (ahead->stamp == stamp) {
      if (ahead->status.ok()) return std::move(ahead->served);
      // The same contents of a graph or a program were loaded before. Beside other loads it may have lacked
      // time or memory.
      if (!RunsFile(settings.backend) || hooks_.closed()) return ahead->status;
      Log(LogLevel::kWarning, "loading the model beside others failed; it is loaded again alone",
          {{"model", settings.name},
           {"version", version.version},
           {"reason", std::string(ahead->status.message())}});
    }
  }
  // Loads on other threads would disturb the measurements of this one.
  AwaitAhead();
  ServedModelOptions options = OptionsOf(settings, version, model);
  TakeNode(&options);
  options.takes_over = model->versions.count(version.version) > 0;
  return Made(std::move(options));
}

absl::StatusOr<std::unique_ptr<ServedModel>> ModelHost::Made(ServedModelOptions options) {
  DeviceGroup* const devices = DevicesOf(options);
  auto served = std::make_unique<ServedModel>(std::move(options), devices, clock_, metrics_);
  if (absl::Status loaded = Safely([&] { return served->Load(); }); !loaded.ok()) return loaded;
  return served;
}

int64_t ModelHost::ExpectedOf(const ModelVersion& version, const std::optional<MeasuredKind>& known) {
  return std::max(kGrowth * WeightsBytes(version), known ? known->bytes : 0);
}

absl::Status ModelHost::Safely(absl::FunctionRef<absl::Status()> load) {
  try {
    return load();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while the model was loaded");
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(absl::StrCat("the model could not be started: ", error.what()));
  }
}

DeviceGroup* ModelHost::DevicesOf(const ServedModelOptions& options) {
  if (!options.settings.gpus.empty()) return &gpus_;
  return IsShadow(options) ? &idle_cores_ : &cores_;
}

std::optional<MeasuredKind> ModelHost::KnownKind(const ModelSettings& settings, const ModelVersion& version) {
  if (settings.pin) return std::nullopt;
  return FindKind(OptionsOf(settings, version, nullptr));
}

int64_t ModelHost::ExpectedBytes(const ModelEntry& entry, const ModelStamp& stamp, bool all_anew) {
  const auto model = hosted_.find(entry.settings.name);
  int64_t bytes = 0;
  for (const ModelVersion& version : entry.versions) {
    if (model != hosted_.end() && !all_anew && IsSame(model->second, entry.settings, version, stamp))
      continue;
    bytes += ExpectedOf(version, KnownKind(entry.settings, version));
  }
  return bytes;
}

ServedModelOptions ModelHost::OptionsOf(const ModelSettings& configured, const ModelVersion& version,
                                        const Model* model) {
  ServedModelOptions options;
  options.settings = configured;
  PlaceOnEveryGpu(options_.gpus, &options.settings);
  const ModelSettings& settings = options.settings;
  options.deps = {.response_cache = options_.response_cache,
                  .check_ensemble = hooks_.check_ensemble,
                  .kinds = &kinds_,
                  .log_once = &log_once_,
                  .load_step = [table = table_, name = settings.name, number = version.version](
                                   const LoadStep& step) { table->SetLoadStep(name, number, step); },
                  .find_version = [table = table_, name = settings.name](
                                      int64_t number) { return table->FindReady(name, number); },
                  .shadow_decided = hooks_.shadow_decided};
  const int asked = settings.batching.threads > 0 ? settings.batching.threads : options_.threads_per_instance;
  options.threads_per_instance = ThreadsPerInstance(asked, options_.cores, settings.instances);
  options.cores = options_.cores;
  if (options_.nodes.size() > 1 && settings.gpus.empty() && !settings.pin) {
    options.nodes = options_.nodes;
    // A pass across nodes waits for the other's memory.
    if (asked == 0) {
      options.threads_per_instance =
          std::min(options.threads_per_instance, MaxCoresOfPass(options_.cores, options_.nodes));
    }
  }
  options.fewer_threads = asked == 0 && options_.warm_up > absl::ZeroDuration();
  if (settings.pin) options.pinned_to = CoresFor(*model, settings.instances * options.threads_per_instance);
  options.default_max_queue_size =
      std::max<int64_t>(options_.default_max_queue_size, settings.batching.max_batch_size);
  options.warm_up = options_.warm_up;
  options.permissions = options_.permissions;
  options.version = version;
  return options;
}

std::shared_ptr<const CoreRange> ModelHost::CoresFor(const Model& model, int count) {
  for (const auto& [number, version] : model.versions) {
    const std::shared_ptr<const CoreRange>& held = version.loaded->model->pinned_to();
    if (held != nullptr && held->count >= count) return held;
  }
  return pinned_cores_.Take(count);
}

void ModelHost::TakeNode(ServedModelOptions* options) {
  if (!options->nodes.empty()) options->first_node = next_node_++ % static_cast<int>(options->nodes.size());
}

std::vector<std::string> ModelHost::Hosted() const {
  std::vector<std::string> names;
  for (const auto& [name, model] : hosted_) names.push_back(name);
  return names;
}

std::vector<std::string> ModelHost::PartsOf(const std::string& name) const {
  const auto model = hosted_.find(name);
  return model == hosted_.end() ? std::vector<std::string>() : model->second.parts;
}

void ModelHost::Dismiss(const std::string& name, std::optional<std::string> listed_as, absl::Time deadline,
                        Done done) {
  auto dismissal = std::make_shared<Dismissal>(Dismissal{name, deadline, std::move(done), 0});
  // What earlier orders, or newer loads, have already taken out of service.
  std::set<int64_t> leaving;
  for (Leaving& left : leaving_) {
    if (left.loaded->model->name() != name) continue;
    leaving.insert(left.loaded->model->version());
    left.dismissals.push_back(dismissal);
    ++dismissal->left;
    left.listed_as = listed_as;
  }
  const auto model = hosted_.find(name);
  std::map<int64_t, Version> versions;
  if (model != hosted_.end()) {
    versions.swap(model->second.versions);
    hosted_.erase(model);
  }
  for (const IndexEntry& line : table_->Index()) {
    if (line.name != name) continue;
    failed_.erase({name, line.version});
    if (!listed_as) continue;
    if (line.version == 0) {
      table_->WithdrawModel(name, *listed_as);
      continue;
    }
    const bool computes = versions.count(line.version) > 0 || leaving.count(line.version) > 0;
    table_->Withdraw(name, line.version, computes ? State::kUnloading : State::kUnavailable,
                     computes ? "" : *listed_as);
  }
  if (!listed_as) table_->EraseModel(name);
  for (auto& [number, version] : versions) LetGo(std::move(version.loaded), dismissal, listed_as);
  if (dismissal->left == 0) std::exchange(dismissal->done, nullptr)(absl::OkStatus());
}

std::shared_ptr<ModelHost::Held> ModelHost::Hold(std::unique_ptr<ServedModel> model) {
  auto loaded = std::make_shared<Held>();
  loaded->unused = std::make_shared<std::atomic<bool>>(false);
  loaded->handle = std::shared_ptr<ServedModel>(
      model.get(), [unused = loaded->unused, released = hooks_.released](ServedModel*) {
        unused->store(true);
        released();
      });
  loaded->model = std::move(model);
  absl::MutexLock lock(&mutex_);
  all_.push_back(loaded);
  return loaded;
}

void ModelHost::LetGo(std::shared_ptr<Held> loaded, std::shared_ptr<Dismissal> dismissal,
                      std::optional<std::string> listed_as) {
  Held* const left = loaded.get();
  Leaving& leaving = leaving_.emplace_back(
      Leaving{.loaded = std::move(loaded), .since = clock_->Now(), .listed_as = std::move(listed_as)});
  if (dismissal != nullptr) {
    ++dismissal->left;
    leaving.dismissals.push_back(std::move(dismissal));
  }
  left->handle.reset();
}

absl::Time ModelHost::LastUsed(const std::string& name, int depth) const {
  const auto model = hosted_.find(name);
  if (model == hosted_.end()) return absl::InfinitePast();
  absl::Time last = absl::InfinitePast();
  for (const auto& [number, version] : model->second.versions) {
    const Held& loaded = *version.loaded;
    if (loaded.handle.use_count() > kIdleOwners) loaded.model->NoteUse();
    last = std::max(last, loaded.model->last_used());
  }
  // Ensembles that were changed may form a cycle.
  if (depth > kMaxDepthOfUse) return last;
  for (const std::string& part : model->second.parts) last = std::max(last, LastUsed(part, depth + 1));
  return last;
}

int64_t ModelHost::MemoryOf(const std::string& name) const {
  const auto model = hosted_.find(name);
  if (model == hosted_.end()) return 0;
  int64_t bytes = 0;
  for (const auto& [number, version] : model->second.versions) bytes += version.loaded->model->memory_bytes();
  return bytes;
}

absl::Duration ModelHost::LoadTimeOf(const std::string& name) const {
  const auto model = hosted_.find(name);
  if (model == hosted_.end()) return absl::ZeroDuration();
  absl::Duration time = absl::ZeroDuration();
  for (const auto& [number, version] : model->second.versions)
    time += version.loaded->model->Snapshot().load_duration;
  return time;
}

int64_t ModelHost::MemoryHosted() const {
  int64_t bytes = 0;
  for (const auto& [name, model] : hosted_) bytes += MemoryOf(name);
  return bytes;
}

int64_t ModelHost::MemoryLeaving() const {
  int64_t bytes = 0;
  for (const Leaving& leaving : leaving_) bytes += leaving.loaded->model->memory_bytes();
  return bytes;
}

absl::Time ModelHost::LastLeft() const {
  absl::Time last = absl::InfinitePast();
  for (const Leaving& leaving : leaving_) last = std::max(last, leaving.since);
  return last;
}

bool ModelHost::FreeUnused() {
  std::vector<Leaving> unused;
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    if (it->loaded->unused->load()) {
      unused.push_back(std::move(*it));
      it = leaving_.erase(it);
    } else {
      ++it;
    }
  }
  for (Leaving& left : unused) Free(std::move(left));
  return !unused.empty();
}

void ModelHost::Free(Leaving left) {
  ServedModel* const model = left.loaded->model.get();
  const std::string name = model->name();
  const int64_t version = model->version();
  model->Close();
  {
    absl::MutexLock lock(&mutex_);
    all_.erase(std::remove(all_.begin(), all_.end(), left.loaded), all_.end());
  }
  const bool is_on_gpus = model->is_on_gpus();
  left.loaded.reset();
  ReturnFreeMemory();
  if (is_on_gpus) models::FreeUnusedGpuMemory();
  // Unless it was loaded again in the meantime.
  if (left.listed_as && !IsHosted(name) && AheadOf(name).empty())
    table_->Withdraw(name, version, State::kUnavailable, *left.listed_as);
  Log(LogLevel::kInfo, "model freed", {{"model", name}, {"version", version}});
  for (const std::shared_ptr<Dismissal>& dismissal : left.dismissals) {
    if (--dismissal->left > 0 || !dismissal->done) continue;
    std::exchange(dismissal->done, nullptr)(absl::OkStatus());
  }
}

void ModelHost::ReportLate(absl::Time now) {
  for (const std::shared_ptr<Dismissal>& dismissal : OpenDismissals()) {
    if (dismissal->deadline > now) continue;
    std::exchange(dismissal->done, nullptr)(absl::DeadlineExceededError(absl::StrCat(
        "model '", dismissal->name, "' no longer accepts requests, but is still computing those that ",
        "it has accepted; its memory is freed once they are answered")));
  }
}

absl::Time ModelHost::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const std::shared_ptr<Dismissal>& dismissal : OpenDismissals())
    next = std::min(next, dismissal->deadline);
  return next;
}

std::set<std::shared_ptr<ModelHost::Dismissal>> ModelHost::OpenDismissals() const {
  std::set<std::shared_ptr<Dismissal>> open;
  for (const Leaving& leaving : leaving_) {
    for (const std::shared_ptr<Dismissal>& dismissal : leaving.dismissals)
      if (dismissal->done) open.insert(dismissal);
  }
  return open;
}

std::vector<std::shared_ptr<ModelHost::Held>> ModelHost::All() const {
  absl::MutexLock lock(&mutex_);
  return all_;
}

absl::Duration ModelHost::BusyFor() const {
  absl::Duration longest = absl::ZeroDuration();
  for (const auto& loaded : All()) {
    // A shadow version that hangs is no reason to restart the daemon, whose other models serve.
    if (!loaded->model->is_shadow()) longest = std::max(longest, loaded->model->BusyFor());
  }
  return longest;
}

std::string ModelHost::LostModel() const {
  for (const auto& loaded : All()) {
    if (loaded->model->device_lost()) return loaded->model->name();
  }
  return "";
}

void ModelHost::Sweep() {
  cores_.Sweep();
  gpus_.Sweep();
  idle_cores_.TrySweep();
}

void ModelHost::CountDemand() { metrics_->AddDemand(cores_.TakeDemand(), gpus_.TakeDemand()); }

void ModelHost::Close() {
  AwaitAhead();
  ahead_.clear();
  for (const auto& loaded : All()) loaded->model->Close();
  for (const std::shared_ptr<Dismissal>& dismissal : OpenDismissals())
    std::exchange(dismissal->done, nullptr)(absl::UnavailableError("the daemon is shutting down"));
}

}  // namespace saccade::server
