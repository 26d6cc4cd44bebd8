#include "server/repository/completion.h"

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "models/api/error.h"
#include "models/weights/format/mapped_file.h"
#include "models/weights/format/safetensors.h"
#include "server/repository/versions.h"

namespace saccade::server {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 40;
constexpr absl::string_view kOption = "saccade.option.";

std::string HighestVersion(const RepositoryPath& model) {
  const auto entries = model.List();
  if (!entries.ok()) return "";
  int64_t highest = 0;
  for (const DirectoryEntry& entry : *entries) {
    int64_t version = 0;
    // Other folders are no versions (versions.h).
    if (entry.is_directory && entry.name.front() != '0' && absl::SimpleAtoi(entry.name, &version))
      highest = std::max(highest, version);
  }
  return highest > 0 ? absl::StrCat(highest) : "";
}

std::string WeightsNamed(const inference::ModelConfig& config) {
  const auto parameter = config.parameters().find("weights");
  if (parameter != config.parameters().end()) return parameter->second.string_value();
  return config.default_model_filename();
}

void Take(const std::map<std::string, std::string>& metadata, inference::ModelConfig* config) {
  auto& parameters = *config->mutable_parameters();
  const auto set = [&](absl::string_view name, const std::string& value) {
    auto& parameter = parameters[std::string(name)];
    if (parameter.string_value().empty()) parameter.set_string_value(value);
  };
  for (const auto& [key, value] : metadata) {
    if (key == "saccade.architecture") set("architecture", value);
    if (absl::StartsWith(key, kOption)) set(absl::StripPrefix(key, kOption), value);
  }
}

}  // namespace

absl::Status Complete(const RepositoryPath& model, inference::ModelConfig* config) {
  const bool may_be_ours = config->platform().empty() && !config->has_ensemble_scheduling() &&
                           (config->backend().empty() || config->backend() == "saccade");
  if (!may_be_ours || config->parameters().count("architecture") > 0) return absl::OkStatus();
  const std::string version = HighestVersion(model);
  if (version.empty()) return absl::OkStatus();
  const RepositoryPath folder = model / version;
  const std::string named = WeightsNamed(*config);
  // Errors of ChooseWeights are reported when the versions are read.
  if (config->backend().empty()) {
    const auto program = ChooseWeights(folder, Backend::kPytorch, named);
    if (program.ok() && (*program == "model.pt" || *program == "model.pt2")) {
      config->set_backend("pytorch");
      return absl::OkStatus();
    }
    const auto graph = ChooseWeights(folder, Backend::kOpenvino, named);
    if (graph.ok() && (*graph == "model.xml" || *graph == "model.onnx")) {
      config->set_backend(*graph == "model.onnx" ? "onnxruntime" : "openvino");
      return absl::OkStatus();
    }
  }
  const auto weights = ChooseWeights(folder, Backend::kSaccade, named);
  if (!weights.ok() || !absl::EndsWith(*weights, ".safetensors")) return absl::OkStatus();
  const RepositoryPath file = folder / *weights;
  const auto resolved = file.Resolve();
  if (!resolved.ok()) return resolved.status();
  try {
    const auto mapped = models::MappedFile::Open(resolved->string(), kMaxFileBytes);
    Take(models::SafetensorsMetadata(mapped->bytes()), config);
  } catch (const models::LoadError& error) {
    return absl::InvalidArgumentError(absl::StrCat(file.shown(), ": ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
