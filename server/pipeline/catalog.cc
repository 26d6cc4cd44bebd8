#include "server/pipeline/catalog.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/logging/log.h"
#include "server/repository/repository.h"

namespace saccade::server {
namespace {

int ThreadsPerInstance(int asked, int instances) {
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / instances);
}

// A name from a client, short and printable enough to be put into an answer.
std::string Quoted(absl::string_view name) {
  return absl::StrCat("'", absl::CHexEscape(name.substr(0, 128)), "'");
}

}  // namespace

Catalog::Catalog(CatalogOptions options, Clock* clock, Metrics* metrics)
    : options_(std::move(options)), clock_(clock), metrics_(metrics) {}

absl::Status Catalog::Scan() {
  for (const std::string& repository : options_.repositories) {
    if (absl::Status added = Add(repository); !added.ok()) return added;
  }
  return absl::OkStatus();
}

absl::Status Catalog::Add(const std::string& repository) {
  auto scan = ScanRepository(repository);
  if (!scan.ok()) return scan.status();
  absl::MutexLock lock(&mutex_);
  const auto insert = [&](const std::string& name, Entry entry) {
    if (entries_.emplace(name, std::move(entry)).second) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("model '", name, "' stands in more than one --model-repository; keep one of them"));
  };
  for (ModelEntry& model : scan->models) {
    ServedModelOptions options;
    const int threads = model.settings.batching.threads;
    options.threads_per_instance =
        ThreadsPerInstance(threads > 0 ? threads : options_.threads_per_instance, model.settings.instances);
    if (model.settings.pin) {
      options.first_core = next_core_;
      next_core_ += model.settings.instances * options.threads_per_instance;
    }
    options.default_max_queue_size =
        std::max<int64_t>(options_.default_max_queue_size, model.settings.batching.max_batch_size);
    options.version = model.versions.back();
    options.settings = std::move(model.settings);
    const std::string name = options.settings.name;
    Device* const device = DeviceOf(options.settings);
    Entry entry{.model = std::make_shared<ServedModel>(std::move(options), device, clock_, metrics_),
                .snapshot = {}};
    if (absl::Status status = insert(name, std::move(entry)); !status.ok()) return status;
  }
  for (const BrokenModel& broken : scan->broken) {
    Entry entry;
    entry.snapshot.name = broken.name;
    entry.snapshot.state = ModelSnapshot::State::kUnavailable;
    entry.snapshot.reason = std::string(broken.status.message());
    if (absl::Status status = insert(broken.name, std::move(entry)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

Device* Catalog::DeviceOf(const ModelSettings& settings) {
  // What one stream leaves of a GPU, a second one uses.
  constexpr int kStreamsOfGpu = 2;
  std::unique_ptr<Device>& device = devices_[settings.gpu.value_or(-1)];
  if (device == nullptr) {
    const int cores = settings.gpu ? kStreamsOfGpu : static_cast<int>(std::thread::hardware_concurrency());
    device = std::make_unique<Device>(SchedulerOptions{.cores = std::max(1, cores)}, clock_);
  }
  return device.get();
}

absl::Status Catalog::LoadAll(const Observer& observer) {
  absl::Status first;
  const auto failed = [&](const ModelSnapshot& model) {
    Log(LogLevel::kError, "model unavailable",
        {{"model", model.name}, {"version", model.version}, {"reason", model.reason}});
    first.Update(absl::FailedPreconditionError(absl::StrCat("model '", model.name, "': ", model.reason)));
  };
  for (const ModelSnapshot& listed : List()) {
    if (listed.state == ModelSnapshot::State::kUnavailable) failed(listed);
  }
  for (const auto& model : Models()) {
    {
      absl::MutexLock lock(&mutex_);
      if (closed_) return absl::CancelledError("shutting down while models were loading");
    }
    Log(LogLevel::kInfo, "loading model", {{"model", model->name()}, {"version", model->version()}});
    const absl::Status status = model->Load();
    const ModelSnapshot snapshot = model->Snapshot();
    observer(snapshot);
    if (!status.ok()) {
      failed(snapshot);
      continue;
    }
    for (const std::string& note : snapshot.description.notes) {
      Log(LogLevel::kWarning, "model note",
          {{"model", snapshot.name}, {"version", snapshot.version}, {"note", note}});
    }
    Log(LogLevel::kInfo, "model ready",
        {{"model", snapshot.name},
         {"version", snapshot.version},
         {"architecture", snapshot.description.architecture},
         {"load_duration", snapshot.load_duration}});
  }
  return first;
}

absl::StatusOr<const Catalog::Entry*> Catalog::Find(absl::string_view name, int64_t version) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    const auto name_of = [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.first); };
    std::string known = absl::StrJoin(entries_, ", ", name_of);
    if (known.size() > 1024) known = absl::StrCat(known.substr(0, 1024), " ...");
    return absl::NotFoundError(absl::StrCat("no model ", Quoted(name), "; this daemon has: ",
                                            known.empty() ? "none (its repository is empty)" : known));
  }
  const Entry& entry = found->second;
  if (entry.model != nullptr && version != 0 && version != entry.model->version()) {
    return absl::NotFoundError(absl::StrCat("model '", found->first, "' has no version ", version,
                                            " here; it serves version ", entry.model->version()));
  }
  return &entry;
}

absl::StatusOr<std::shared_ptr<ServedModel>> Catalog::FindReady(absl::string_view name,
                                                                int64_t version) const {
  absl::ReaderMutexLock lock(&mutex_);
  auto entry = Find(name, version);
  if (!entry.ok()) return entry.status();
  if ((*entry)->model == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("model '", name, "' is unavailable: ", (*entry)->snapshot.reason));
  }
  if (absl::Status ready = (*entry)->model->CheckReady(); !ready.ok()) return ready;
  return (*entry)->model;
}

absl::StatusOr<ModelSnapshot> Catalog::Describe(absl::string_view name, int64_t version) const {
  absl::ReaderMutexLock lock(&mutex_);
  auto entry = Find(name, version);
  if (!entry.ok()) return entry.status();
  return (*entry)->model == nullptr ? (*entry)->snapshot : (*entry)->model->Snapshot();
}

std::vector<ModelSnapshot> Catalog::List() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<ModelSnapshot> list;
  list.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) {
    list.push_back(entry.model == nullptr ? entry.snapshot : entry.model->Snapshot());
  }
  return list;
}

absl::Status Catalog::CheckAllReady() const {
  for (const ModelSnapshot& model : List()) {
    if (model.state == ModelSnapshot::State::kReady) continue;
    return absl::UnavailableError(
        absl::StrCat("model '", model.name, "' is ", model.reason.empty() ? "still loading" : model.reason));
  }
  return absl::OkStatus();
}

absl::Duration Catalog::BusyFor() const {
  absl::Duration longest = absl::ZeroDuration();
  for (const auto& model : Models()) longest = std::max(longest, model->BusyFor());
  return longest;
}

void Catalog::Sweep() {
  std::vector<Device*> devices;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [gpu, device] : devices_) devices.push_back(device.get());
  }
  for (Device* device : devices) device->Sweep();
}

std::vector<std::shared_ptr<ServedModel>> Catalog::Models() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<std::shared_ptr<ServedModel>> models;
  for (const auto& [name, entry] : entries_) {
    if (entry.model != nullptr) models.push_back(entry.model);
  }
  return models;
}

void Catalog::Close() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  for (const auto& model : Models()) model->Close();
}

}  // namespace saccade::server
