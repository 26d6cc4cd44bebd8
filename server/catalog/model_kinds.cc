#include "server/catalog/model_kinds.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {

int64_t WeightsBytes(const ModelVersion& version) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(version.weights_path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

std::string KindOf(const ModelSettings& settings, const ModelVersion& version, int max_threads) {
  if (settings.backend != Backend::kSaccade || !settings.gpus.empty()) return "";
  // The samples decide which precision is chosen.
  if (!settings.samples.empty()) return "";
  std::string kind = absl::StrCat(settings.architecture, "\n", settings.batching.max_batch_size, "\n",
                                  settings.instances, "\n", max_threads, "\n", WeightsBytes(version));
  for (const auto& [name, value] : settings.options) absl::StrAppend(&kind, "\n", name, "=", value);
  return kind;
}

std::optional<MeasuredKind> ModelKinds::Find(const std::string& kind) const {
  absl::MutexLock lock(&mutex_);
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) return std::nullopt;
  return found->second;
}

void ModelKinds::Keep(const std::string& kind, MeasuredKind measured) {
  if (kind.empty()) return;
  absl::MutexLock lock(&mutex_);
  if (kinds_.size() < kMaxKinds || kinds_.count(kind) > 0) kinds_[kind] = std::move(measured);
}

}  // namespace saccade::server
