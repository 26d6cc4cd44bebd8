#include "server/repository/instance_config.h"

#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr int kMaxInstances = 64;

using Group = inference::ModelInstanceGroup;

// -1: the CPU.
absl::Status ReadDevices(const Group& group, const std::string& field, const ConfigCheck& check,
                         std::set<int>* devices) {
  const bool on_gpu = group.kind() == Group::KIND_GPU;
  if (group.kind() == Group::KIND_MODEL) {
    return check.Error(field + ".kind", "is KIND_MODEL, expected KIND_AUTO, KIND_CPU or KIND_GPU: where a ",
                       "model computes is told here, not by its file");
  }
  if (!on_gpu && group.gpus_size() > 0) {
    return check.Error(field + ".gpus", "names a GPU, expected kind: KIND_GPU beside it");
  }
  for (const int gpu : group.gpus()) {
    if (gpu < 0) return check.Error(field + ".gpus", "is ", gpu, ", expected 0 or more");
    devices->insert(gpu);
  }
  if (group.gpus_size() == 0) devices->insert(on_gpu ? 0 : -1);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadInstances(const inference::ModelConfig& config, const ConfigCheck& check,
                           ModelSettings* settings) {
  if (settings->backend == Backend::kEnsemble) {
    if (config.instance_group_size() == 0) return absl::OkStatus();
    return check.Error("instance_group", "stands in an ensemble, which computes nothing itself; remove it");
  }
  int64_t instances = 0;
  std::set<int> devices;
  for (int i = 0; i < config.instance_group_size(); ++i) {
    const Group& group = config.instance_group(i);
    const std::string field = absl::StrCat("instance_group[", i, "]");
    if (absl::Status status = ReadDevices(group, field, check, &devices); !status.ok()) return status;
    if (devices.size() > 1) {
      return check.Error(field, "has instances on another device; a model computes on one GPU or on the CPU");
    }
    if (group.count() < 0) return check.Error(field + ".count", "is ", group.count(), ", expected 1 or more");
    // As in Triton, a group without a count is one instance.
    instances += group.count() == 0 ? 1 : group.count();
    if (instances > kMaxInstances) {
      return check.Error(field + ".count", "is ", instances, " in all, expected 1 to ", kMaxInstances);
    }
  }
  if (instances > 0) settings->instances = static_cast<int>(instances);
  if (!devices.empty() && *devices.begin() >= 0) settings->gpu = *devices.begin();
  return absl::OkStatus();
}

}  // namespace saccade::server
