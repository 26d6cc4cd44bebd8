#include "server/repository/config_file.h"

#include <cstdint>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/repository/batching_config.h"
#include "server/repository/config_check.h"
#include "server/repository/daemon_parameters.h"
#include "server/repository/text_format.h"

namespace saccade::server {
namespace {

constexpr int kMaxBatchSize = 1024;
constexpr int kMaxInstances = 64;

absl::Status CheckIdentity(const inference::ModelConfig& config, absl::string_view folder,
                           const ConfigCheck& check) {
  if (!config.name().empty() && config.name() != folder) {
    return check.Error("name", "is '", absl::CHexEscape(config.name()), "', but the folder is '", folder,
                       "'; rename one of them, or leave the name out");
  }
  if (!config.backend().empty() && config.backend() != "saccade") {
    return check.Error("backend", "is '", absl::CHexEscape(config.backend()), "', expected 'saccade'");
  }
  return absl::OkStatus();
}

absl::Status ReadMaxBatchSize(const ParsedConfig& config, const ConfigCheck& check, ModelSettings* settings) {
  if (!config.has_max_batch_size) return absl::OkStatus();
  const int size = config.message.max_batch_size();
  if (size < 1 || size > kMaxBatchSize) {
    return check.Error("max_batch_size", "is ", size, ", expected 1 to ", kMaxBatchSize,
                       "; 1 turns batching off (0, tensors without a batch dimension, is not served)");
  }
  settings->batching.max_batch_size = size;
  return absl::OkStatus();
}

absl::Status ReadInstances(const inference::ModelConfig& config, const ConfigCheck& check,
                           ModelSettings* settings) {
  int64_t instances = 0;
  std::set<int> devices;  // -1: the CPU
  for (const auto& group : config.instance_group()) {
    const bool on_gpu = group.kind() == inference::ModelInstanceGroup::KIND_GPU;
    if (!on_gpu && group.gpus_size() > 0) {
      return check.Error("instance_group.gpus", "names a GPU, expected kind: KIND_GPU beside it");
    }
    for (const int gpu : group.gpus()) {
      if (gpu < 0) return check.Error("instance_group.gpus", "is ", gpu, ", expected 0 or more");
      devices.insert(gpu);
    }
    if (group.gpus_size() == 0) devices.insert(on_gpu ? 0 : -1);
    if (devices.size() > 1) {
      return check.Error("instance_group",
                         "has instances on several devices; a model computes on one GPU or on the CPU");
    }
    if (group.count() < 0)
      return check.Error("instance_group.count", "is ", group.count(), ", expected 1 or more");
    // As in Triton, a group without a count is one instance.
    instances += group.count() == 0 ? 1 : group.count();
  }
  if (instances > kMaxInstances) {
    return check.Error("instance_group.count", "is ", instances, " in all, expected 1 to ", kMaxInstances);
  }
  if (instances > 0) settings->instances = static_cast<int>(instances);
  if (!devices.empty() && *devices.begin() >= 0) settings->gpu = *devices.begin();
  return absl::OkStatus();
}

absl::Status CheckFileName(absl::string_view parameter, const std::string& name, const ConfigCheck& check) {
  if (!name.empty() && name.front() != '.' && name.find('/') == std::string::npos) return absl::OkStatus();
  return check.Error(absl::StrCat("parameters '", parameter, "'"), "is '", absl::CHexEscape(name),
                     "', expected the plain name of a file, without a folder");
}

absl::Status ReadParameters(const inference::ModelConfig& config, const ConfigCheck& check,
                            ConfigFile* file) {
  for (const auto& [key, parameter] : config.parameters()) {
    const std::string& value = parameter.string_value();
    auto ours = ReadDaemonParameter(key, value, check, &file->settings);
    if (!ours.ok()) return ours.status();
    if (*ours) continue;
    absl::Status status;
    if (key == "architecture") {
      file->settings.architecture = value;
    } else if (key == "labels") {
      status = CheckFileName(key, value, check);
      file->labels_file = value;
    } else if (key == "weights") {
      status = CheckFileName(key, value, check);
      file->weights_file = value;
    } else {
      file->settings.options[key] = value;
    }
    if (!status.ok()) return status;
  }
  if (!file->settings.architecture.empty()) return absl::OkStatus();
  return check.Error("parameters 'architecture'",
                     "is missing; name the network, as in "
                     "parameters { key: \"architecture\" value { string_value: \"sanet\" } }");
}

}  // namespace

absl::StatusOr<ConfigFile> ParseConfig(const std::string& text, absl::string_view shown,
                                       absl::string_view folder) {
  const auto config = ParseTextFormat(text, shown);
  if (!config.ok()) return config.status();
  const ConfigCheck check(shown);
  ConfigFile file;
  file.settings.name = std::string(folder);
  absl::Status status = CheckIdentity(config->message, folder, check);
  if (status.ok()) status = ReadMaxBatchSize(*config, check, &file.settings);
  if (status.ok()) status = ReadInstances(config->message, check, &file.settings);
  if (status.ok()) status = ReadBatching(config->message.dynamic_batching(), check, &file.settings);
  if (status.ok()) status = ReadParameters(config->message, check, &file);
  if (!status.ok()) return status;
  return file;
}

}  // namespace saccade::server
