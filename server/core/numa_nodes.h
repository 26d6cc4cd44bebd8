// The nodes of a machine whose processors reach a part of the memory faster than the rest (NUMA).
#pragma once

#include <string>
#include <vector>

namespace saccade::server {

// The processors of one node, ascending.
using NumaNode = std::vector<int>;

// Sorts `processors` by the node that each belongs to, from the files /sys/devices/system/node/node*/cpulist
// below `root`. Nodes without any of them are left out. A machine that does not tell, or tells of a processor
// in no node or in two, is one node.
std::vector<NumaNode> ReadNumaNodes(const std::vector<int>& processors, const std::string& root = "");

}  // namespace saccade::server
