#include "server/catalog/memory_nodes.h"

#include <algorithm>

#include "server/core/physical_cores.h"

namespace saccade::server {

std::vector<MemoryNode> WithCores(const std::vector<NumaNode>& nodes, const std::string& root) {
  std::vector<MemoryNode> with_cores;
  with_cores.reserve(nodes.size());
  for (const NumaNode& node : nodes)
    with_cores.push_back({node, std::max(1, static_cast<int>(ReadPhysicalCores(node, root).size()))});
  return with_cores;
}

int MaxCoresOfPass(int cores, const std::vector<MemoryNode>& nodes) {
  int most = cores;
  for (const MemoryNode& node : nodes) most = std::min(most, node.cores);
  return std::max(1, most);
}

std::optional<size_t> NodeOfInstance(const std::vector<MemoryNode>& nodes, const InstancesOnNodes& model,
                                     int index) {
  if (nodes.size() < 2) return std::nullopt;
  const size_t first = static_cast<size_t>(model.first_node) % nodes.size();
  const auto threads = static_cast<size_t>(model.threads);
  if (model.instances * threads <= static_cast<size_t>(nodes[first].cores)) return first;
  const size_t own = static_cast<size_t>(model.first_node + index) % nodes.size();
  if (model.threads > nodes[own].cores) return std::nullopt;
  return own;
}

}  // namespace saccade::server
