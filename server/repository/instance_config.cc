#include "server/repository/instance_config.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr int kMaxInstances = 64;

using Group = inference::ModelInstanceGroup;

absl::Status CheckDevices(const Group& group, const std::string& field, const ConfigCheck& check) {
  if (group.kind() == Group::KIND_MODEL) {
    return check.Error(field + ".kind",
                       "is KIND_MODEL, expected KIND_AUTO, KIND_CPU or KIND_GPU: the device of a ",
                       "model is configured here, not in its file");
  }
  if (group.kind() != Group::KIND_GPU && group.gpus_size() > 0) {
    return check.Error(field + ".gpus", "names a GPU, expected kind: KIND_GPU with it");
  }
  for (const int gpu : group.gpus()) {
    if (gpu < 0) return check.Error(field + ".gpus", "is ", gpu, ", expected 0 or more");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadInstances(const inference::ModelConfig& config, const ConfigCheck& check,
                           ModelSettings* settings) {
  if (settings->backend == Backend::kEnsemble) {
    if (config.instance_group_size() == 0) return absl::OkStatus();
    return check.Error("instance_group", "is set for an ensemble, which computes nothing itself; remove it");
  }
  int64_t instances = 0;
  for (int i = 0; i < config.instance_group_size(); ++i) {
    const Group& group = config.instance_group(i);
    const std::string field = absl::StrCat("instance_group[", i, "]");
    if (absl::Status status = CheckDevices(group, field, check); !status.ok()) return status;
    const bool on_gpu = group.kind() == Group::KIND_GPU;
    if (i > 0 && on_gpu == settings->gpus.empty()) {
      return check.Error(field, "mixes GPUs and the CPU, expected instances only on GPUs or only on the CPU");
    }
    if (group.count() < 0) return check.Error(field + ".count", "is ", group.count(), ", expected 1 or more");
    // As in Triton, a group without a count has one instance on each of its GPUs.
    const int64_t count = group.count() == 0 ? 1 : group.count();
    instances += count * std::max(1, group.gpus_size());
    if (instances > kMaxInstances) {
      return check.Error(field + ".count", "is ", instances, " in total, expected 1 to ", kMaxInstances);
    }
    if (!on_gpu) continue;
    for (const int gpu : group.gpus()) settings->gpus.insert(settings->gpus.end(), count, gpu);
    if (group.gpus_size() == 0) settings->gpus.insert(settings->gpus.end(), count, kEveryGpu);
  }
  settings->has_instances = instances > 0;
  if (instances > 0) settings->instances = static_cast<int>(instances);
  return absl::OkStatus();
}

}  // namespace saccade::server
