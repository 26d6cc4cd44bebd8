#include "server/repository/config_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/described/picture_program.h"
#include "server/repository/batching_config.h"
#include "server/repository/config_check.h"
#include "server/repository/config_fields.h"
#include "server/repository/crop_rules.h"
#include "server/repository/daemon_parameters.h"
#include "server/repository/ensemble_config.h"
#include "server/repository/instance_config.h"
#include "server/repository/tensor_config.h"
#include "server/repository/version_policy.h"
#include "server/repository/warmup_config.h"

namespace saccade::server {
namespace {

constexpr int kMaxBatchSize = 65536;
// Triton's platform for packages of AOTInductor, which backend pytorch runs too.
constexpr char kPackages[] = "torch_aoti";

constexpr std::array<Backend, 5> kBackends = {Backend::kSaccade, Backend::kPytorch, Backend::kOnnxruntime,
                                              Backend::kOpenvino, Backend::kEnsemble};

absl::Status CheckName(const inference::ModelConfig& config, absl::string_view folder,
                       const ConfigCheck& check) {
  if (config.name().empty() || config.name() == folder) return absl::OkStatus();
  return check.Error("name", "is ", Quoted(config.name()), ", but the folder is '", folder,
                     "'; rename one of them, or leave the name out");
}

absl::StatusOr<Backend> ReadBackend(const inference::ModelConfig& config, const ConfigCheck& check) {
  const std::string& backend = config.backend();
  const std::string& platform = config.platform();
  const auto has_platform = [&](Backend known) {
    if (platform == kPackages) return known == Backend::kPytorch;
    return !platform.empty() && PlatformOf(known) == platform;
  };
  const auto* const of_platform = std::find_if(kBackends.begin(), kBackends.end(), has_platform);
  if (!platform.empty() && of_platform == kBackends.end()) {
    return check.Error("platform", "is ", Quoted(platform),
                       ", expected 'pytorch_libtorch', 'torch_aoti', 'onnxruntime_onnx', 'ensemble', or "
                       "backend: \"saccade\" instead");
  }
  for (const Backend known : kBackends) {
    if (backend == NameOf(known)) {
      if (platform.empty() || has_platform(known)) return known;
      return check.Error("platform", "is '", platform, "', which contradicts backend '", backend,
                         "'; remove one of them");
    }
  }
  if (!backend.empty()) {
    return check.Error("backend", "is ", Quoted(backend),
                       ", expected 'saccade', 'pytorch', 'onnxruntime', 'openvino' or 'ensemble'");
  }
  if (of_platform != kBackends.end()) return *of_platform;
  if (config.has_ensemble_scheduling()) return Backend::kEnsemble;
  return Backend::kSaccade;
}

absl::Status ReadMaxBatchSize(const ParsedConfig& config, const ConfigCheck& check, ModelSettings* settings) {
  const int size = config.message.max_batch_size();
  const bool ours = settings->backend == Backend::kSaccade || settings->pictures != nullptr;
  // If the field is missing, models of pictures use the daemon's default; others use 0, as in Triton.
  if (ours && size == 0 && !config.lines.Has("max_batch_size")) {
    if (settings->pictures != nullptr && settings->pictures->max_batch_size > 0)
      settings->batching.max_batch_size = settings->pictures->max_batch_size;
    return absl::OkStatus();
  }
  if (size < (ours ? 1 : 0) || size > kMaxBatchSize) {
    return check.Error("max_batch_size", "is ", size, ", expected ", ours ? 1 : 0, " to ", kMaxBatchSize,
                       ours
                           ? "; 1 turns batching off (0, tensors without a batch dimension, is for programs, "
                             "graphs and ensembles)"
                           : "");
  }
  settings->has_batch_dimension = size > 0;
  settings->batching.max_batch_size = std::max(1, size);
  return absl::OkStatus();
}

absl::Status ReadParameters(const inference::ModelConfig& config, const ConfigCheck& check,
                            ConfigFile* file) {
  // Sorted, so that with several mistakes the same one is always reported.
  const std::map<std::string, inference::ModelParameter> parameters(config.parameters().begin(),
                                                                    config.parameters().end());
  for (const auto& [key, parameter] : parameters) {
    const std::string& value = parameter.string_value();
    auto ours = ReadDaemonParameter(key, value, check, &file->settings);
    if (!ours.ok()) return ours.status();
    if (*ours) continue;
    const std::string field = MapEntryPath("parameters", key);
    absl::Status status;
    if (key == "architecture" && file->settings.backend == Backend::kSaccade) {
      file->settings.architecture = value;
    } else if (key == "labels") {
      status = CheckFileName(field, value, check);
      file->labels_file = value;
    } else if (key == "weights") {
      status = CheckFileName(field, value, check);
      file->weights_file = value;
    } else {
      file->settings.options[key] = value;
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// What a trial chooses must not be chosen by the configuration too.
absl::Status CheckOptimize(const ConfigCheck& check, const ModelSettings& settings) {
  if (!settings.optimize) return absl::OkStatus();
  const auto refused = [&](absl::string_view problem) {
    return check.Error(MapEntryPath("parameters", "optimize"), problem);
  };
  if (settings.backend == Backend::kEnsemble)
    return refused(
        "is set for an ensemble, which computes nothing itself; set it for the models of its steps");
  if (!settings.gpus.empty()) return refused("is set together with KIND_GPU, expected instances on the CPU");
  if (settings.batching.threads > 0)
    return refused("is set together with 'threads', which it would choose; remove one of them");
  if (settings.pin)
    return refused(
        "is set together with 'pin', whose cores are assigned before it has chosen; remove one of them");
  return absl::OkStatus();
}

absl::Status ReadWeightsFile(const inference::ModelConfig& config, const ConfigCheck& check,
                             ConfigFile* file) {
  constexpr char kField[] = "default_model_filename";
  const std::string& name = config.default_model_filename();
  if (name.empty()) return absl::OkStatus();
  if (absl::Status status = CheckFileName(kField, name, check); !status.ok()) return status;
  if (!file->weights_file.empty() && file->weights_file != name) {
    return check.Error(kField, "is ", Quoted(name), ", but the parameter 'weights' is ",
                       Quoted(file->weights_file), "; remove one of them");
  }
  file->weights_file = name;
  return absl::OkStatus();
}

// A package has another ending than TorchScript, which the platform must not be taken for.
absl::Status ReadPackage(const inference::ModelConfig& config, const ConfigCheck& check, ConfigFile* file) {
  if (config.platform() != kPackages) return absl::OkStatus();
  if (file->weights_file.empty()) file->weights_file = "model.pt2";
  if (file->weights_file.ends_with(".pt2")) return absl::OkStatus();
  return check.Error("platform", "is '", kPackages, "', but the file is ", Quoted(file->weights_file),
                     ", expected a package of AOTInductor, .pt2; TorchScript is 'pytorch_libtorch'");
}

// Checks and reads what depends on the backend.
absl::Status ReadForBackend(const inference::ModelConfig& config, const ConfigCheck& check,
                            ConfigFile* file) {
  ModelSettings& settings = file->settings;
  if (settings.backend != Backend::kEnsemble && config.has_ensemble_scheduling()) {
    return check.Error("ensemble_scheduling", "is set together with backend '", NameOf(settings.backend),
                       "', expected platform: \"ensemble\"");
  }
  if (settings.backend == Backend::kSaccade || settings.pictures != nullptr) {
    if (config.input_size() + config.output_size() > 0) {
      settings.warnings.push_back(absl::StrCat(
          check.Where(config.input_size() > 0 ? "input" : "output"), "input and output are ignored: ",
          settings.pictures != nullptr ? "the description of the pictures defines them"
                                       : "the architecture defines them"));
    }
    settings.inputs.clear();
    settings.outputs.clear();
    if (!settings.architecture.empty() || settings.pictures != nullptr) return absl::OkStatus();
    return check.Error(MapEntryPath("parameters", "architecture"),
                       "is missing; set the architecture, as in "
                       "parameters { key: \"architecture\" value { string_value: \"sanet\" } }");
  }
  for (const bool input : {true, false}) {
    if (!(input ? settings.inputs : settings.outputs).empty()) continue;
    return check.Error(input ? "input" : "output", "is missing; a model of backend '",
                       NameOf(settings.backend), "' requires name, data_type and dims for each");
  }
  if (RunsFile(settings.backend)) return absl::OkStatus();
  absl::Status status = ReadEnsemble(config.ensemble_scheduling(), check, &settings);
  return status.ok() ? ReadCrops(check, &settings) : status;
}

std::string Completed(inference::ModelConfig config, const ModelSettings& settings) {
  config.set_name(settings.name);
  config.set_max_batch_size(settings.has_batch_dimension ? static_cast<int>(settings.batching.max_batch_size)
                                                         : 0);
  config.set_backend(settings.backend == Backend::kEnsemble ? "" : NameOf(settings.backend));
  if (*PlatformOf(settings.backend) != '\0' && config.platform() != kPackages)
    config.set_platform(PlatformOf(settings.backend));
  return config.SerializeAsString();
}

}  // namespace

absl::StatusOr<ConfigFile> ReadSettings(const ParsedConfig& config, absl::string_view shown,
                                        absl::string_view folder,
                                        std::shared_ptr<const models::PictureProgram> pictures) {
  const ConfigCheck check(shown, &config.lines);
  const inference::ModelConfig& message = config.message;
  ConfigFile file;
  ModelSettings& settings = file.settings;
  settings.name = std::string(folder);
  for (const std::string& field : config.lines.repeated_keys())
    settings.warnings.push_back(
        absl::StrCat(check.Where(field), "is given more than once; the last one is used"));
  absl::Status status = CheckName(message, folder, check);
  if (status.ok()) status = CheckFields(message, check, &settings.warnings);
  if (!status.ok()) return status;
  const auto backend = ReadBackend(message, check);
  if (!backend.ok()) return backend.status();
  settings.backend = *backend;
  // An ensemble's or an architecture's folder may hold such files for other tools.
  if (RunsFile(*backend)) settings.pictures = std::move(pictures);
  status = ReadMaxBatchSize(config, check, &settings);
  if (status.ok()) status = ReadInstances(message, check, &settings);
  if (status.ok()) status = ReadBatching(message.dynamic_batching(), check, &settings);
  if (status.ok()) status = ReadVersionPolicy(message.version_policy(), check, &settings.version_policy);
  if (status.ok()) status = ReadTensors(message, check, &settings, &file.output_label_files);
  if (status.ok()) status = ReadWarmups(message, check, &settings);
  if (status.ok()) status = ReadParameters(message, check, &file);
  if (status.ok()) status = CheckOptimize(check, settings);
  if (status.ok()) status = ReadWeightsFile(message, check, &file);
  if (status.ok()) status = ReadPackage(message, check, &file);
  if (status.ok()) status = ReadForBackend(message, check, &file);
  if (!status.ok()) return status;
  settings.response_cache = message.response_cache().enable();
  settings.config = Completed(message, settings);
  return file;
}

absl::StatusOr<ConfigFile> ParseConfig(const std::string& text, absl::string_view shown,
                                       absl::string_view folder) {
  const auto config = ParseTextFormat(text, shown);
  if (!config.ok()) return config.status();
  return ReadSettings(*config, shown, folder);
}

}  // namespace saccade::server
