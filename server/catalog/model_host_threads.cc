// The host's trials of the number of threads of models that serve.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "server/catalog/model_host.h"
#include "server/core/free_memory.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// A model that holds more is not loaded once more only to try its threads: the memory may not be there.
constexpr int64_t kMaxBytesTriedAgain = int64_t{512} << 20;

}  // namespace

std::deque<ModelHost::ThreadTrial> ModelHost::ThreadTrials() const {
  std::deque<ThreadTrial> trials;
  for (const auto& [name, model] : hosted_) {
    for (const auto& [number, version] : model.versions) trials.push_back({name, number});
  }
  return trials;
}

bool ModelHost::TryThreads(const ModelStamp& stamp, ThreadTrial* trial) {
  const bool is_measured = trial->best.has_value();
  const auto model = hosted_.find(trial->model);
  Model* const hosted = model == hosted_.end() ? nullptr : &model->second;
  const std::shared_ptr<ServedModel> serving = hosted == nullptr ? nullptr : FindToTry(*trial, stamp, hosted);
  absl::Status status;
  if (!is_measured) {
    if (serving == nullptr) return false;
    status = MeasureThreads(serving, hosted, trial);
  } else if (serving == nullptr || serving != trial->measured.lock()) {
    status = absl::AbortedError("the model, its files or the memory that is free have changed since");
  } else {
    status = ChangeThreads(*serving, *trial->best, hosted);
  }
  if (!status.ok()) {
    metrics_->RecordThreadTrial(Metrics::TrialResult::kFailed);
    Log(LogLevel::kWarning, "threads could not be tried again; the model goes on with those it has",
        {{"model", trial->model}, {"version", trial->version}, {"reason", status.message()}});
    return false;
  }
  if (!is_measured && trial->best) return true;
  metrics_->RecordThreadTrial(is_measured ? Metrics::TrialResult::kChanged : Metrics::TrialResult::kKept);
  return false;
}

std::shared_ptr<ServedModel> ModelHost::FindToTry(const ThreadTrial& trial, const ModelStamp& stamp,
                                                  Model* model) {
  const auto found = model->versions.find(trial.version);
  const auto files = stamp.versions.find(trial.version);
  if (found == model->versions.end() || files == stamp.versions.end()) return nullptr;
  const Version& version = found->second;
  if (version.stamp != files->second || version.shared_stamp != stamp.shared) return nullptr;
  const std::shared_ptr<ServedModel> serving = version.loaded->handle;
  const ModelSettings& settings = serving->settings();
  if (settings.shadow || settings.promotion || options_.nodes.size() > 1) return nullptr;
  if (!serving->CheckReady().ok() || !IsTried(OptionsOf(settings, serving->files(), model))) return nullptr;
  const int64_t expected = ExpectedOf(serving->files(), KnownKind(settings, serving->files()));
  const int64_t bytes = std::max(serving->memory_bytes(), expected);
  const bool fits = options_.max_model_bytes == 0 || MemoryInUse() + bytes <= options_.max_model_bytes;
  return fits && serving->memory_bytes() <= kMaxBytesTriedAgain ? serving : nullptr;
}

absl::Status ModelHost::MeasureThreads(const std::shared_ptr<ServedModel>& serving, Model* model,
                                       ThreadTrial* trial) {
  const auto timing = serving->Timing();
  if (!timing) return absl::UnavailableError("the model does not serve");
  // Loads on other threads would disturb the measurements.
  AwaitAhead();
  absl::StatusOr<InstanceSplit> best = absl::UnknownError("");
  const absl::Status tried = Safely([&] {
    best = serving->TryAgain(OptionsOf(serving->settings(), serving->files(), model));
    return best.status();
  });
  ReturnFreeMemory();
  if (!tried.ok()) return tried;
  const bool kept = best->threads == timing->threads && best->instances == timing->instances;
  Log(LogLevel::kInfo, kept ? "threads tried again and kept" : "threads tried again; others are better",
      {{"model", trial->model},
       {"version", trial->version},
       {"threads", best->threads},
       {"instances", best->instances},
       {"threads_before", timing->threads},
       {"instances_before", timing->instances}});
  if (kept) return absl::OkStatus();
  trial->measured = serving;
  trial->best = *best;
  return absl::OkStatus();
}

absl::Status ModelHost::ChangeThreads(const ServedModel& serving, const InstanceSplit& split, Model* model) {
  ServedModelOptions options = OptionsOf(serving.settings(), serving.files(), model);
  options.split = split;
  // Measuring it again under load could choose another precision and change answers.
  options.precision = serving.precision();
  options.takes_over = true;
  // The version goes on to be listed as ready.
  options.deps.load_step = nullptr;
  auto served = Made(std::move(options));
  metrics_->RecordLoad(served.ok());
  if (!served.ok()) return served.status();
  const std::string& name = serving.name();
  const int64_t number = serving.version();
  Enter(name, number, *std::move(served), model);
  Log(LogLevel::kInfo, "model ready with other threads",
      {{"model", name}, {"version", number}, {"threads", split.threads}, {"instances", split.instances}});
  return absl::OkStatus();
}

}  // namespace saccade::server
