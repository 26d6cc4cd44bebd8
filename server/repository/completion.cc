#include "server/repository/completion.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "models/api/data_type.h"
#include "models/api/error.h"
#include "models/api/text.h"
#include "models/graphs/onnx_index.h"
#include "models/graphs/onnx_ports.h"
#include "models/weights/format/file_contents.h"
#include "models/weights/format/safetensors.h"
#include "models/weights/format/weights_format.h"
#include "server/repository/versions.h"

namespace saccade::server {
namespace {

// As when the graph is loaded.
constexpr int64_t kMaxGraphBytes = int64_t{2} << 30;
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

// Adds a port of an ONNX file to the inputs or outputs. The first of its sizes is the batch's if `batched`.
template <typename Tensor>
absl::Status AddPort(const models::OnnxPort& port, bool batched, absl::string_view what, Tensor* tensor) {
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", what, " ", models::Quote(port.name), " ", why,
                     "; write the model's inputs and outputs into config.pbtxt"));
  };
  inference::DataType type = inference::TYPE_INVALID;
  if (!port.type || !inference::DataType_Parse(absl::StrCat("TYPE_", models::NameOf(*port.type)), &type))
    return wrong("is neither a tensor of numbers nor of booleans");
  if (batched && (!port.dims || port.dims->empty()))
    return wrong("has no first size in the file, but config.pbtxt has a max_batch_size");
  tensor->set_name(port.name);
  tensor->set_data_type(type);
  if (!port.dims) {
    tensor->add_dims(-1);
    return absl::OkStatus();
  }
  for (size_t i = batched ? 1 : 0; i < port.dims->size(); ++i) tensor->add_dims((*port.dims)[i]);
  if (tensor->dims().empty()) {
    tensor->add_dims(1);
    tensor->mutable_reshape();
  }
  return absl::OkStatus();
}

// Takes the inputs and outputs that are missing from the ONNX file.
absl::Status TakePorts(const models::OnnxSummary& graph, inference::ModelConfig* config) {
  const bool all_missing = config->input().empty() && config->output().empty();
  if (all_missing && config->max_batch_size() == 0)
    config->set_max_batch_size(static_cast<int32_t>(models::MaxBatchOf(graph)));
  const bool batched = config->max_batch_size() > 0;
  if (config->input().empty()) {
    for (const models::OnnxPort& port : graph.inputs) {
      if (absl::Status added = AddPort(port, batched, "input", config->add_input()); !added.ok())
        return added;
    }
  }
  if (config->output().empty()) {
    for (const models::OnnxPort& port : graph.outputs) {
      if (absl::Status added = AddPort(port, batched, "output", config->add_output()); !added.ok())
        return added;
    }
  }
  return absl::OkStatus();
}

// Calls `read`, which may throw a LoadError, with the path of a version's file; an error of it names the
// file.
absl::Status WithFile(const RepositoryPath& file,
                      const std::function<absl::Status(const std::string&)>& read) {
  const auto resolved = file.Resolve();
  if (!resolved.ok()) return resolved.status();
  try {
    const absl::Status status = read(resolved->string());
    if (status.ok()) return status;
    return absl::InvalidArgumentError(absl::StrCat(file.shown(), ": ", status.message()));
  } catch (const models::LoadError& error) {
    return absl::InvalidArgumentError(absl::StrCat(file.shown(), ": ", error.what()));
  }
}

bool IsGraph(const inference::ModelConfig& config) {
  return config.backend() == "onnxruntime" || config.backend() == "openvino" ||
         config.platform() == "onnxruntime_onnx";
}

absl::Status CompleteGraph(const RepositoryPath& folder, const std::string& named,
                           inference::ModelConfig* config) {
  if (!config->input().empty() && !config->output().empty()) return absl::OkStatus();
  const auto graph = ChooseWeights(folder, Backend::kOpenvino, named);
  if (!graph.ok() || !absl::EndsWith(*graph, ".onnx")) return absl::OkStatus();
  return WithFile(folder / *graph, [&](const std::string& path) {
    return TakePorts(models::SummariseOnnx(models::ReadOnnxIndex(path, kMaxGraphBytes)), config);
  });
}

}  // namespace

absl::Status Complete(const RepositoryPath& model, bool pictures, inference::ModelConfig* config) {
  const bool may_be_ours = config->platform().empty() && !config->has_ensemble_scheduling() &&
                           (config->backend().empty() || config->backend() == "saccade");
  const bool is_network = may_be_ours && config->parameters().count("architecture") > 0;
  if (is_network || (!may_be_ours && !IsGraph(*config))) return absl::OkStatus();
  const std::string version = HighestVersion(model);
  if (version.empty()) return absl::OkStatus();
  const RepositoryPath folder = model / version;
  const std::string named = WeightsNamed(*config);
  // Errors of ChooseWeights are reported when the versions are read.
  if (may_be_ours && config->backend().empty()) {
    const auto program = ChooseWeights(folder, Backend::kPytorch, named);
    if (program.ok() && (*program == "model.pt" || *program == "model.pt2")) {
      config->set_backend("pytorch");
      return absl::OkStatus();
    }
    const auto graph = ChooseWeights(folder, Backend::kOpenvino, named);
    if (graph.ok() && (*graph == "model.xml" || *graph == "model.onnx"))
      config->set_backend(*graph == "model.onnx" ? "onnxruntime" : "openvino");
  }
  if (IsGraph(*config)) return pictures ? absl::OkStatus() : CompleteGraph(folder, named, config);
  const auto weights = ChooseWeights(folder, Backend::kSaccade, named);
  if (!weights.ok() || !absl::EndsWith(*weights, ".safetensors")) return absl::OkStatus();
  return WithFile(folder / *weights, [&](const std::string& path) {
    Take(models::SafetensorsMetadata(models::ReadWeightsIndex(path)->bytes()), config);
    return absl::OkStatus();
  });
}

}  // namespace saccade::server
