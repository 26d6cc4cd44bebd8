#include "server/repository/repository.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/repository/config_file.h"
#include "server/repository/files.h"
#include "server/repository/labels.h"
#include "server/repository/versions.h"

namespace saccade::server {
namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr size_t kMaxLabelsBytes = size_t{4} << 20;

bool IsNameCharacter(unsigned char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-'; }

absl::StatusOr<ConfigFile> ReadConfig(const RepositoryPath& model, absl::string_view name) {
  const RepositoryPath path = model / "config.pbtxt";
  if (!path.Exists()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.shown(), " is missing, so the architecture is not known; write it with at least ",
                     "parameters { key: \"architecture\" value { string_value: \"sanet\" } }"));
  }
  const auto text = path.ReadText(kMaxConfigBytes);
  if (!text.ok()) return text.status();
  return ParseConfig(*text, path.shown(), name);
}

absl::StatusOr<std::vector<std::string>> ReadLabels(const RepositoryPath& model, const std::string& named) {
  const RepositoryPath path = model / (named.empty() ? "labels.txt" : named);
  if (named.empty() && !path.Exists()) return std::vector<std::string>();
  const auto text = path.ReadText(kMaxLabelsBytes);
  if (!text.ok()) return text.status();
  return ParseLabels(*text, path.shown());
}

absl::StatusOr<ModelEntry> ReadModelFrom(const RepositoryPath& root, absl::string_view name) {
  if (absl::Status status = CheckModelName(name); !status.ok()) return status;
  const RepositoryPath folder = root / name;
  if (!folder.Exists()) {
    return absl::NotFoundError(absl::StrCat("the model repository holds no folder '", name, "'"));
  }
  auto config = ReadConfig(folder, name);
  if (!config.ok()) return config.status();
  auto labels = ReadLabels(folder, config->labels_file);
  if (!labels.ok()) return labels.status();
  auto versions = ReadVersions(folder, config->weights_file);
  if (!versions.ok()) return versions.status();
  ModelEntry entry{std::move(config->settings), *std::move(versions)};
  entry.settings.labels = *std::move(labels);
  return entry;
}

}  // namespace

absl::Status CheckModelName(absl::string_view name) {
  const bool fits = !name.empty() && name.size() <= kMaxNameBytes && name.front() != '.';
  if (fits && std::all_of(name.begin(), name.end(), IsNameCharacter)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", absl::CHexEscape(name.substr(0, kMaxNameBytes)),
                                                 "' is not a model name; expected 1 to ", kMaxNameBytes,
                                                 " of A-Z a-z 0-9 . _ -, not beginning with a dot"));
}

absl::StatusOr<ModelEntry> ReadModel(const std::string& repository, absl::string_view name) {
  const auto root = RepositoryPath::Root(repository);
  if (!root.ok()) return root.status();
  return ReadModelFrom(*root, name);
}

absl::StatusOr<Scan> ScanRepository(const std::string& repository) {
  const auto root = RepositoryPath::Root(repository);
  if (!root.ok()) return root.status();
  const auto entries = root->List();
  if (!entries.ok()) return entries.status();
  Scan scan;
  for (const DirectoryEntry& entry : *entries) {
    // A folder of the file system's own at the top of most volumes.
    if (entry.is_file || entry.name == "lost+found") continue;
    auto model = ReadModelFrom(*root, entry.name);
    if (model.ok()) {
      scan.models.push_back(*std::move(model));
    } else {
      scan.broken.push_back({absl::CHexEscape(entry.name), model.status()});
    }
  }
  return scan;
}

}  // namespace saccade::server
