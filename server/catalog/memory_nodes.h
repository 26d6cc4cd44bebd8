// How passes and instances are placed on the nodes of memory (NUMA).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "server/core/numa_nodes.h"

namespace saccade::server {

struct MemoryNode {
  // The processors that may be used, ascending.
  NumaNode processors;
  // Their physical cores: a forward pass fills each with one thread.
  int cores = 1;
};

// The nodes with their physical cores, which are read below `root` (ReadPhysicalCores).
std::vector<MemoryNode> WithCores(const std::vector<NumaNode>& nodes, const std::string& root = "");

// The most cores that a pass takes without leaving its node, whichever that is: the physical cores of the
// smallest node, or `cores`, which all passes together may keep busy, if those are fewer. A control group's
// quota may be the reason for that. It belongs to no node, so it is not divided among them. REQUIRES: nodes
// is not empty.
int MaxCoresOfPass(int cores, const std::vector<MemoryNode>& nodes);

// The instances of a model.
struct InstancesOnNodes {
  size_t instances = 1;
  // Threads of one pass of an instance.
  int threads = 1;
  // Index of the node that the model prefers, modulo their number.
  int first_node = 0;
};

// The index of the node on which instance `index` runs: all run on the first node if they fit on its physical
// cores, or else one after the other on the following ones. nullopt if the instance runs anywhere, because
// there are fewer than two nodes or a pass is larger than the node.
std::optional<size_t> NodeOfInstance(const std::vector<MemoryNode>& nodes, const InstancesOnNodes& model,
                                     int index);

}  // namespace saccade::server
