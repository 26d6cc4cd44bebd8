#include "server/repository/versions.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/repository/config_check.h"

namespace saccade::server {
namespace {

struct FileNames {
  std::vector<absl::string_view> preferred;
  std::vector<absl::string_view> endings;
};

FileNames NamesOf(Backend backend) {
  if (backend == Backend::kPytorch) return {{"model.pt", "model.pt2"}, {".pt", ".pt2"}};
  if (backend == Backend::kOnnxruntime) return {{"model.onnx"}, {".onnx"}};
  if (backend == Backend::kOpenvino) return {{"model.xml", "model.onnx"}, {".xml", ".onnx"}};
  return {{"weights.safetensors", "model.safetensors", "weights.pt"}, {".safetensors", ".pt", ".pth"}};
}

// Lies beside the weights from which `saccade quantize` made it (models/weights/quantized_file.h).
constexpr absl::string_view kInt8Weights = "weights.int8.safetensors";

bool IsNumeric(absl::string_view name) { return std::all_of(name.begin(), name.end(), absl::ascii_isdigit); }

absl::StatusOr<std::string> PathOf(const RepositoryPath& file) {
  const auto resolved = file.ResolveFolder();
  if (!resolved.ok()) return resolved.status();
  if (std::error_code error; !std::filesystem::is_regular_file(*resolved, error)) {
    return absl::InvalidArgumentError(absl::StrCat(file.shown(), ": expected a regular file"));
  }
  return resolved->string();
}

absl::StatusOr<std::string> FindWeights(const RepositoryPath& folder, Backend backend,
                                        const std::string& weights_file) {
  const auto weights = ChooseWeights(folder, backend, weights_file);
  if (!weights.ok()) return weights.status();
  return PathOf(folder / *weights);
}

absl::StatusOr<ModelVersion> ReadVersion(const RepositoryPath& folder, absl::string_view name,
                                         Backend backend, const std::string& weights_file) {
  ModelVersion version;
  if (name.front() == '0' || !absl::SimpleAtoi(name, &version.version)) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder.shown(), ": is not a version; expected a positive integer without leading zeros, e.g. 1"));
  }
  if (backend == Backend::kEnsemble) return version;
  auto weights = FindWeights(folder, backend, weights_file);
  if (weights.ok()) {
    version.weights_path = *std::move(weights);
  } else {
    version.status = weights.status();
  }
  const RepositoryPath int8 = folder / kInt8Weights;
  if (backend != Backend::kSaccade || !int8.Exists()) return version;
  auto resolved = PathOf(int8);
  if (resolved.ok()) {
    version.int8_weights_path = *std::move(resolved);
  } else if (version.status.ok()) {
    version.status = resolved.status();
  }
  return version;
}

}  // namespace

bool IsWeightsName(absl::string_view name) {
  for (const Backend backend :
       {Backend::kSaccade, Backend::kPytorch, Backend::kOnnxruntime, Backend::kOpenvino}) {
    for (const absl::string_view ending : NamesOf(backend).endings) {
      if (absl::EndsWith(name, ending)) return true;
    }
  }
  return false;
}

absl::StatusOr<std::string> ChooseWeights(const RepositoryPath& folder, Backend backend,
                                          const std::string& weights_file) {
  const auto entries = folder.List();
  if (!entries.ok()) return entries.status();
  const FileNames names = NamesOf(backend);
  std::vector<std::string> found;
  for (const DirectoryEntry& entry : *entries) {
    const auto ends = [&](absl::string_view ending) { return absl::EndsWith(entry.name, ending); };
    if (std::any_of(names.endings.begin(), names.endings.end(), ends)) found.push_back(entry.name);
  }
  const auto holds = [&](absl::string_view name) {
    return std::find(found.begin(), found.end(), name) != found.end();
  };
  if (!weights_file.empty()) {
    if (holds(weights_file)) return weights_file;
    return absl::InvalidArgumentError(
        absl::StrCat(folder.shown(), ": has no weights file ", Quoted(weights_file),
                     ", which config.pbtxt names; it must end in ", absl::StrJoin(names.endings, " or ")));
  }
  for (const absl::string_view name : names.preferred) {
    if (holds(name)) return std::string(name);
  }
  // Served by itself only if nothing else is there.
  if (found.size() == 2) found.erase(std::remove(found.begin(), found.end(), kInt8Weights), found.end());
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.shown(), ": has no weights; expected ", names.preferred.front(),
                     names.preferred.size() > 1 ? absl::StrCat(" or ", names.preferred.back()) : ""));
  }
  std::vector<std::string> shown;
  for (const std::string& name : found) shown.push_back(Quoted(name));
  return absl::InvalidArgumentError(absl::StrCat(folder.shown(), ": has several weights files (",
                                                 NamesOfSome(shown),
                                                 "); name one in the parameter 'weights' of config.pbtxt"));
}

absl::StatusOr<std::vector<ModelVersion>> ReadVersions(const RepositoryPath& model, Backend backend,
                                                       const std::string& weights_file) {
  const auto entries = model.List();
  if (!entries.ok()) return entries.status();
  std::vector<ModelVersion> versions;
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.is_directory || !IsNumeric(entry.name)) continue;
    auto version = ReadVersion(model / entry.name, entry.name, backend, weights_file);
    if (!version.ok()) return version.status();
    versions.push_back(*std::move(version));
  }
  if (versions.empty() && backend == Backend::kEnsemble) versions.push_back({.version = 1});
  if (versions.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(model.shown(), ": has no version; put the weights into ", model.shown(), "/1/"));
  }
  std::sort(versions.begin(), versions.end(),
            [](const ModelVersion& a, const ModelVersion& b) { return a.version < b.version; });
  return versions;
}

}  // namespace saccade::server
