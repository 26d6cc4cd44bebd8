#include "server/catalog/model_table.h"
#include "server/core/errors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/bad_field.h"

namespace saccade::server {
namespace {

using State = ModelSnapshot::State;

constexpr auto kFirst = [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.first); };

// Accepts only digits without a leading zero, as the daemon writes versions, so that each number has one
// form.
bool ReadNumber(absl::string_view text, int64_t* number) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isdigit(c); }) &&
         absl::SimpleAtoi(text, number) && text[0] != '0';
}

absl::Status NotReady(absl::string_view name, const std::string& version, State state,
                      const std::string& reason) {
  switch (state) {
    case State::kLoading:
      return absl::UnavailableError(absl::StrCat("model '", name, "' is still loading; try again"));
    case State::kUnloading:
      return absl::UnavailableError(absl::StrCat("model '", name, "'", version, " is being unloaded"));
    case State::kReady:
    case State::kUnavailable:
      break;
  }
  return absl::UnavailableError(absl::StrCat("model '", name, "'", version, " is unavailable: ", reason));
}

}  // namespace

absl::StatusOr<ModelTable::Models::const_iterator> ModelTable::Find(absl::string_view name) const {
  const auto found = models_.find(name);
  if (found != models_.end()) return found;
  std::string known = absl::StrJoin(models_, ", ", kFirst);
  if (known.size() > 1024) known = absl::StrCat(known.substr(0, 1024), " ...");
  return absl::NotFoundError(absl::StrCat("no model ", Shown(name), "; this daemon has: ",
                                          known.empty() ? "none (its repository is empty)" : known));
}

absl::StatusOr<const ModelTable::Version*> ModelTable::Choose(const std::string& name, const Model& model,
                                                              int64_t version) {
  if (model.versions.empty()) return nullptr;
  if (version == 0) {
    if (const auto promoted = model.versions.find(model.answering.promoted);
        promoted != model.versions.end() && promoted->second.serving != nullptr)
      return &promoted->second;
    const Version* highest = nullptr;
    for (auto it = model.versions.rbegin(); it != model.versions.rend(); ++it) {
      if (it->first == model.answering.shadow) continue;
      if (it->second.serving != nullptr) return &it->second;
      if (highest == nullptr) highest = &it->second;
    }
    return highest;
  }
  const auto found = model.versions.find(version);
  if (found != model.versions.end()) return &found->second;
  return absl::NotFoundError(
      absl::StrCat("model '", name, "' has no version ", version, " here; ", ServingText(model)));
}

std::string ModelTable::ReasonOf(const Model& model, const std::string& reason) {
  return reason.empty() ? reason : absl::StrCat(reason, model.retry);
}

ModelSnapshot ModelTable::SnapshotOf(const std::string& name, const Model& model, const Version* version) {
  if (version == nullptr) {
    ModelSnapshot snapshot;
    snapshot.name = name;
    snapshot.state = model.state;
    snapshot.reason = ReasonOf(model, model.reason);
    return snapshot;
  }
  ModelSnapshot snapshot = version->serving == nullptr ? version->snapshot : version->serving->Snapshot();
  snapshot.reason = ReasonOf(model, version->snapshot.reason);
  return snapshot;
}

absl::StatusOr<ModelTable::Handle> ModelTable::FindReady(absl::string_view name, int64_t version) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto model = Find(name);
  if (!model.ok()) return model.status();
  const auto chosen = Choose((*model)->first, (*model)->second, version);
  if (!chosen.ok()) {
    // The load that a request orders may find the version.
    if (IsCold((*model)->second)) return NotReady(name, "", State::kUnavailable, (*model)->second.reason);
    return chosen.status();
  }
  if (*chosen == nullptr) return NotReady(name, "", (*model)->second.state, (*model)->second.reason);
  if ((*chosen)->serving == nullptr) {
    const ModelSnapshot& snapshot = (*chosen)->snapshot;
    return NotReady(name, absl::StrCat(" version ", snapshot.version), snapshot.state, snapshot.reason);
  }
  if (absl::Status ready = (*chosen)->serving->CheckReady(); !ready.ok()) return ready;
  return (*chosen)->serving;
}

absl::StatusOr<ModelSnapshot> ModelTable::Describe(absl::string_view name, int64_t version) const {
  Handle serving;
  ModelSnapshot snapshot;
  {
    absl::ReaderMutexLock lock(&mutex_);
    const auto model = Find(name);
    if (!model.ok()) return model.status();
    const auto chosen = Choose((*model)->first, (*model)->second, version);
    if (!chosen.ok()) return chosen.status();
    snapshot = SnapshotOf((*model)->first, (*model)->second, *chosen);
    if (*chosen != nullptr) serving = (*chosen)->serving;
  }
  // Waits for the lock of the model's devices. The table's lock must not wait with it, because requests need
  // it.
  if (serving != nullptr) snapshot.timing = serving->Timing();
  return snapshot;
}

std::vector<int64_t> ModelTable::ServedVersions(absl::string_view name) const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<int64_t> served;
  const auto model = models_.find(name);
  if (model == models_.end()) return served;
  for (const auto& [number, version] : model->second.versions) {
    if (version.serving != nullptr) served.push_back(number);
  }
  return served;
}

std::vector<ModelTable::Handle> ModelTable::Served() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<Handle> served;
  for (const auto& [name, model] : models_) {
    for (const auto& [number, version] : model.versions) {
      if (version.serving != nullptr) served.push_back(version.serving);
    }
  }
  return served;
}

std::vector<ModelSnapshot> ModelTable::List() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<ModelSnapshot> list;
  for (const auto& [name, model] : models_) {
    if (model.versions.empty()) list.push_back(SnapshotOf(name, model, nullptr));
    for (const auto& [number, version] : model.versions) list.push_back(SnapshotOf(name, model, &version));
  }
  return list;
}

uint64_t ModelTable::generation() const {
  absl::ReaderMutexLock lock(&mutex_);
  return generation_;
}

std::vector<IndexEntry> ModelTable::Index() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<IndexEntry> index;
  for (const auto& [name, model] : models_) {
    if (model.versions.empty()) index.push_back({name, 0, model.state, ReasonOf(model, model.reason)});
    for (const auto& [number, version] : model.versions) {
      const bool serves = version.serving != nullptr;
      index.push_back({name, number, serves ? State::kReady : version.snapshot.state,
                       ReasonOf(model, version.snapshot.reason)});
    }
  }
  return index;
}

absl::StatusOr<int64_t> ModelTable::VersionOf(absl::string_view name, absl::string_view version) const {
  int64_t number = 0;
  if (version.empty()) return number;
  if (ReadNumber(version, &number)) return number;
  absl::ReaderMutexLock lock(&mutex_);
  const auto model = Find(name);
  if (!model.ok()) return model.status();
  const auto& labels = (*model)->second.labels;
  if (const auto label = labels.find(std::string(version)); label != labels.end()) return label->second;
  if (IsCold((*model)->second)) {
    return absl::UnavailableError(absl::StrCat("model '", name, "' is not loaded, and its labels, such as ",
                                               Shown(version),
                                               ", are not known before; a request without a label loads it"));
  }
  absl::Status unknown = absl::InvalidArgumentError(
      absl::StrCat("version: is ", Shown(version), "; expected a positive integer",
                   labels.empty() ? " or an empty string for the latest"
                                  : absl::StrCat(", an empty string for the latest, or one of model '", name,
                                                 "'s labels ", absl::StrJoin(labels, ", ", kFirst))));
  SetBadField(unknown, "version");
  return unknown;
}

bool ModelTable::IsKnown(absl::string_view name) const {
  absl::ReaderMutexLock lock(&mutex_);
  return models_.find(name) != models_.end();
}

bool ModelTable::IsCold(absl::string_view name) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto model = models_.find(name);
  return model != models_.end() && IsCold(model->second);
}

bool ModelTable::IsCold(const Model& model) { return model.on_demand && !Serves(model); }

std::string ModelTable::ServingText(const Model& model) {
  std::vector<int64_t> serving;
  for (const auto& [number, version] : model.versions)
    if (version.serving != nullptr) serving.push_back(number);
  return serving.empty() ? "no version of it serves"
                         : absl::StrCat("it serves version ", absl::StrJoin(serving, ", "));
}

bool ModelTable::Serves(const Model& model) {
  return std::any_of(model.versions.begin(), model.versions.end(),
                     [](const auto& version) { return version.second.serving != nullptr; });
}

ModelTable::Counts ModelTable::CountModels() const {
  absl::ReaderMutexLock lock(&mutex_);
  Counts counts;
  for (const auto& [name, model] : models_) ++(Serves(model) ? counts.served : counts.not_served);
  return counts;
}

absl::Status ModelTable::CheckRequired() const {
  absl::ReaderMutexLock lock(&mutex_);
  for (const auto& [name, model] : models_) {
    if (!model.required) continue;
    const auto chosen = Choose(name, model, 0);
    if (*chosen != nullptr && (*chosen)->serving != nullptr) continue;
    const ModelSnapshot snapshot = SnapshotOf(name, model, *chosen);
    return absl::UnavailableError(absl::StrCat("model '", name, "' is ",
                                               snapshot.state == State::kLoading
                                                   ? "still loading"
                                                   : absl::StrCat("unavailable: ", snapshot.reason)));
  }
  return absl::OkStatus();
}

std::vector<std::string> ModelTable::Missing() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [name, model] : models_) {
    if (!model.required) continue;
    const auto chosen = Choose(name, model, 0);
    if (*chosen == nullptr || (*chosen)->serving == nullptr) names.emplace_back(name);
  }
  return names;
}

void ModelTable::Require(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  ++generation_;
  models_[name].required = true;
}

void ModelTable::SetModel(const std::string& name, State state, std::string reason) {
  absl::MutexLock lock(&mutex_);
  ++generation_;
  Model& model = models_[name];
  model.state = state;
  // While a version is served, its reason says why a newer load of it failed.
  for (auto& [number, version] : model.versions) version.snapshot.reason = reason;
  model.reason = std::move(reason);
}

void ModelTable::SetOnDemand(const std::string& name, bool on_demand) {
  absl::MutexLock lock(&mutex_);
  ++generation_;
  models_[name].on_demand = on_demand;
}

void ModelTable::SetRetry(const std::string& name, std::string retry) {
  absl::MutexLock lock(&mutex_);
  ++generation_;
  if (const auto model = models_.find(name); model != models_.end()) model->second.retry = std::move(retry);
}

void ModelTable::SetLabels(const std::string& name, std::map<std::string, int64_t> labels) {
  absl::MutexLock lock(&mutex_);
  ++generation_;
  models_[name].labels = std::move(labels);
}

std::map<std::string, int64_t> ModelTable::Labels(const std::string& name) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto model = models_.find(name);
  return model == models_.end() ? std::map<std::string, int64_t>() : model->second.labels;
}

void ModelTable::SetAnswering(const std::string& name, const Answering& answering) {
  absl::MutexLock lock(&mutex_);
  ++generation_;
  models_[name].answering = answering;
}

void ModelTable::SetVersion(const ModelSnapshot& snapshot) {
  absl::MutexLock lock(&mutex_);
  ++generation_;
  ModelSnapshot& entry = models_[snapshot.name].versions[snapshot.version].snapshot;
  // A version may be loaded ahead of its turn, before it is listed again.
  const LoadStep before = entry.load_step;
  entry = snapshot;
  if (entry.state == State::kLoading) entry.load_step = before;
}

void ModelTable::SetLoadStep(const std::string& name, int64_t version, const LoadStep& step) {
  absl::MutexLock lock(&mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) return;
  const auto entry = model->second.versions.find(version);
  if (entry == model->second.versions.end() || entry->second.serving != nullptr) return;
  if (entry->second.snapshot.state == State::kLoading) entry->second.snapshot.load_step = step;
}

void ModelTable::Serve(const std::string& name, int64_t version, Handle model) {
  absl::MutexLock lock(&mutex_);
  ++generation_;
  Version& entry = models_[name].versions[version];
  // The previous reference is released after the lock. If it is the last one, the model is destroyed then.
  entry.serving.swap(model);
  entry.snapshot = ModelSnapshot();
  entry.snapshot.name = name;
  entry.snapshot.version = version;
}

void ModelTable::Withdraw(const std::string& name, int64_t version, State state, std::string reason) {
  // Released after the lock. If it is the last reference, the model is destroyed then.
  Handle gone;
  absl::MutexLock lock(&mutex_);
  ++generation_;
  Model& model = models_[name];
  model.required = false;
  Version& entry = model.versions[version];
  entry.serving.swap(gone);
  entry.snapshot = ModelSnapshot();
  entry.snapshot.name = name;
  entry.snapshot.version = version;
  entry.snapshot.state = state;
  entry.snapshot.reason = std::move(reason);
}

void ModelTable::WithdrawModel(const std::string& name, std::string reason) {
  absl::MutexLock lock(&mutex_);
  ++generation_;
  Model& model = models_[name];
  model.required = false;
  model.state = State::kUnavailable;
  model.reason = std::move(reason);
}

void ModelTable::EraseVersion(const std::string& name, int64_t version) {
  // Released after the lock. If it is the last reference, the model is destroyed then.
  Handle gone;
  absl::MutexLock lock(&mutex_);
  ++generation_;
  const auto model = models_.find(name);
  if (model == models_.end()) return;
  const auto entry = model->second.versions.find(version);
  if (entry == model->second.versions.end()) return;
  entry->second.serving.swap(gone);
  model->second.versions.erase(entry);
}

void ModelTable::EraseModel(const std::string& name) {
  // Released after the lock. If it has the last reference to a version, that is destroyed then.
  Model gone;
  absl::MutexLock lock(&mutex_);
  ++generation_;
  const auto model = models_.find(name);
  if (model == models_.end()) return;
  std::swap(model->second, gone);
  models_.erase(model);
}

}  // namespace saccade::server
