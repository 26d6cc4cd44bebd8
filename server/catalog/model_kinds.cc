#include "server/catalog/model_kinds.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/sha256.h"
#include "server/repository/answer_settings.h"
#include "server/repository/files.h"

namespace saccade::server {

namespace {

// 0 if it cannot be read.
int64_t SizeOfFile(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

// A graph's weights may be in other files beside it.
int64_t BytesOfFiles(const std::filesystem::path& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) bytes += static_cast<int64_t>(entry.file_size(error));
  }
  return bytes;
}

// Bounds on the files and folders beside a graph, which no real model exceeds.
constexpr size_t kMaxEntriesBeside = 1000;
constexpr int kMaxDepthBeside = 8;

// The other files in the graph's folder and below it, sorted, without hidden ones, to which a graph cannot
// refer. nullopt if the folder cannot be read or exceeds the bounds.
std::optional<std::vector<std::string>> FilesBeside(const std::string& graph) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  size_t entries = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(fs::path(graph).parent_path(),
                                         fs::directory_options::follow_directory_symlink, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry.depth() > kMaxDepthBeside || ++entries > kMaxEntriesBeside) return std::nullopt;
    if (entry->path().filename().string().starts_with('.')) {
      entry.disable_recursion_pending();
      continue;
    }
    std::error_code unknown;
    if (entry->path() != graph && entry->is_regular_file(unknown)) files.push_back(entry->path().string());
  }
  if (error) return std::nullopt;
  std::sort(files.begin(), files.end());
  return files;
}

// What the warm-up of the configuration computes.
std::string WarmupsText(const std::vector<Warmup>& warmups) {
  std::string text;
  for (const Warmup& warmup : warmups) {
    absl::StrAppend(&text, "warmup ", warmup.batch_size, " ", warmup.count, "\n");
    for (const WarmupInput& input : warmup.inputs) {
      absl::StrAppend(&text, "of ", absl::CEscape(input.name), " ", NameOf(input.type), " ",
                      absl::StrJoin(input.dims, ","), " ", static_cast<int>(input.data), "\n");
    }
  }
  return text;
}

}  // namespace

int64_t WeightsBytes(const ModelVersion& version) {
  const std::filesystem::path file(version.weights_path);
  if (file.extension() == ".onnx" || file.extension() == ".xml") return BytesOfFiles(file.parent_path());
  return SizeOfFile(version.weights_path);
}

std::string KindOfSettings(const ModelSettings& settings, const ModelVersion& version, int max_threads) {
  if (settings.backend == Backend::kEnsemble || !settings.gpus.empty()) return "";
  const bool runs_file = RunsFile(settings.backend);
  std::string kind = runs_file
                         ? absl::StrCat(NameOf(settings.backend), " ",
                                        Sha256Hex(AnswerSettings(settings) + WarmupsText(settings.warmups)))
                         : settings.architecture;
  absl::StrAppend(&kind, "\n", settings.batching.max_batch_size, "\n", settings.instances, "\n", max_threads,
                  "\n", WeightsBytes(version));
  if (runs_file) return kind;
  // Which layers are in 8 bits shows in the file's size.
  if (!version.int8_weights_path.empty())
    absl::StrAppend(&kind, "\nint8 ", SizeOfFile(version.int8_weights_path));
  for (const auto& [name, value] : settings.options) absl::StrAppend(&kind, "\n", name, "=", value);
  return kind;
}

std::optional<std::string> KindOfFiles(const ModelSettings& settings, const ModelVersion& version,
                                       bool by_samples, FileDigests* digests) {
  std::vector<std::string> paths = {version.weights_path};
  if (IsGraph(settings.backend)) {
    auto others = FilesBeside(version.weights_path);
    if (!others) return std::nullopt;
    paths.insert(paths.end(), others->begin(), others->end());
  } else if (by_samples) {
    if (!version.int8_weights_path.empty()) paths.push_back(version.int8_weights_path);
    paths.insert(paths.end(), settings.samples.begin(), settings.samples.end());
  } else if (!RunsFile(settings.backend)) {
    return "";
  }
  for (const std::string& path : paths) {
    // The links of files that were found earlier may lead elsewhere by now.
    if (!settings.repository.empty() && !CheckInside(settings.repository, path).ok()) return std::nullopt;
  }
  const auto digest = digests->Of(paths);
  if (!digest) return std::nullopt;
  return absl::StrCat("\nfiles ", *digest);
}

ModelKinds::ModelKinds(std::map<std::string, MeasuredKind> kinds, Save save, FileSummer sum,
                       std::function<absl::Time()> now)
    : save_(std::move(save)), digests_(std::move(sum), std::move(now)), kinds_(std::move(kinds)) {
  for (const auto& [name, kind] : kinds_) last_use_ = std::max(last_use_, kind.last_use);
}

std::optional<MeasuredKind> ModelKinds::Find(const std::string& kind) {
  absl::MutexLock lock(&mutex_);
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) return std::nullopt;
  found->second.last_use = ++last_use_;
  return found->second;
}

void ModelKinds::Keep(const std::string& kind, MeasuredKind measured) {
  if (kind.empty()) return;
  absl::MutexLock saving(&save_mutex_);
  std::map<std::string, MeasuredKind> kinds;
  {
    absl::MutexLock lock(&mutex_);
    measured.last_use = ++last_use_;
    kinds_[kind] = std::move(measured);
    while (kinds_.size() > kMaxKinds) {
      kinds_.erase(std::min_element(kinds_.begin(), kinds_.end(), [](const auto& a, const auto& b) {
        return a.second.last_use < b.second.last_use;
      }));
    }
    if (save_ == nullptr) return;
    kinds = kinds_;
  }
  save_(kinds);
}

}  // namespace saccade::server
