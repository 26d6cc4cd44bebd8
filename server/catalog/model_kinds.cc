#include "server/catalog/model_kinds.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {

namespace {

// A graph's weights may be in other files beside it.
int64_t BytesOfFiles(const std::filesystem::path& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) bytes += static_cast<int64_t>(entry.file_size(error));
  }
  return bytes;
}

}  // namespace

int64_t WeightsBytes(const ModelVersion& version) {
  std::error_code error;
  const std::filesystem::path file(version.weights_path);
  if (file.extension() == ".onnx" || file.extension() == ".xml") return BytesOfFiles(file.parent_path());
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
  absl::MutexLock saving(&save_mutex_);
  std::map<std::string, MeasuredKind> kinds;
  {
    absl::MutexLock lock(&mutex_);
    if (kinds_.size() >= kMaxKinds && kinds_.count(kind) == 0) return;
    kinds_[kind] = std::move(measured);
    if (save_ == nullptr) return;
    kinds = kinds_;
  }
  save_(kinds);
}

}  // namespace saccade::server
