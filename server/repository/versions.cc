#include "server/repository/versions.h"

#include <algorithm>
#include <cstdint>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {
namespace {

constexpr absl::string_view kPreferred[] = {"weights.safetensors", "model.safetensors", "weights.pt"};

bool IsWeights(absl::string_view name) {
  return absl::EndsWith(name, ".safetensors") || absl::EndsWith(name, ".pt") || absl::EndsWith(name, ".pth");
}

bool IsNumeric(absl::string_view name) { return std::all_of(name.begin(), name.end(), absl::ascii_isdigit); }

absl::StatusOr<std::string> ChooseWeights(const RepositoryPath& folder, const std::string& wanted) {
  const auto entries = folder.List();
  if (!entries.ok()) return entries.status();
  std::vector<std::string> found;
  for (const DirectoryEntry& entry : *entries) {
    if (IsWeights(entry.name)) found.push_back(entry.name);
  }
  const auto holds = [&](absl::string_view name) {
    return std::find(found.begin(), found.end(), name) != found.end();
  };
  if (!wanted.empty()) {
    if (holds(wanted)) return wanted;
    return absl::InvalidArgumentError(absl::StrCat(folder.shown(), ": holds no weights file '", wanted,
                                                   "', which the parameter 'weights' of config.pbtxt names",
                                                   "; it must end in .safetensors, .pt or .pth"));
  }
  for (absl::string_view name : kPreferred) {
    if (holds(name)) return std::string(name);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.shown(), ": holds no weights; expected weights.safetensors or weights.pt"));
  }
  return absl::InvalidArgumentError(absl::StrCat(folder.shown(), ": holds several weights files (",
                                                 absl::StrJoin(found, ", "),
                                                 "); name one in the parameter 'weights' of config.pbtxt"));
}

absl::StatusOr<ModelVersion> ReadVersion(const RepositoryPath& folder, absl::string_view name,
                                         const std::string& weights_file) {
  ModelVersion version;
  if (name.front() == '0' || !absl::SimpleAtoi(name, &version.version)) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder.shown(), ": not a version; expected a positive integer without leading zeros, as in 1"));
  }
  const auto weights = ChooseWeights(folder, weights_file);
  if (!weights.ok()) return weights.status();
  const RepositoryPath file = folder / *weights;
  const auto resolved = file.Resolve();
  if (!resolved.ok()) return resolved.status();
  if (std::error_code error; !std::filesystem::is_regular_file(*resolved, error)) {
    return absl::InvalidArgumentError(absl::StrCat(file.shown(), ": expected a regular file"));
  }
  version.weights_path = resolved->string();
  return version;
}

}  // namespace

absl::StatusOr<std::vector<ModelVersion>> ReadVersions(const RepositoryPath& model,
                                                       const std::string& weights_file) {
  const auto entries = model.List();
  if (!entries.ok()) return entries.status();
  std::vector<ModelVersion> versions;
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.is_directory || !IsNumeric(entry.name)) continue;
    auto version = ReadVersion(model / entry.name, entry.name, weights_file);
    if (!version.ok()) return version.status();
    versions.push_back(*std::move(version));
  }
  if (versions.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(model.shown(), ": holds no version; put the weights into ", model.shown(), "/1/"));
  }
  std::sort(versions.begin(), versions.end(),
            [](const ModelVersion& a, const ModelVersion& b) { return a.version < b.version; });
  return versions;
}

}  // namespace saccade::server
