#include "server/inference/extensions.h"

namespace saccade::server {

std::vector<std::string> Extensions(const SharedMemory& shared_memory) {
  std::vector<std::string> names = {"classification",   "schedule_policy", "model_configuration",
                                    "model_repository", "statistics",      "logging"};
  if (shared_memory.allowed()) names.emplace_back("system_shared_memory");
  if (shared_memory.CanRegister(RegionKind::kCuda).ok()) names.emplace_back("cuda_shared_memory");
  return names;
}

}  // namespace saccade::server
