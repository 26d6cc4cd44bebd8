// The nodes of a machine whose processors reach a part of the memory faster than the rest (NUMA).
#pragma once

#include <string>
#include <vector>

namespace saccade::server {

// The processors of one node, ascending.
using NumaNode = std::vector<int>;

// Sorts `processors` by the node that each belongs to, from the files /sys/devices/system/node/node*/cpulist
// below `root`. Nodes without any of them are left out. Returns one node with all processors if the files
// are missing, or list a processor in none or in several nodes.
std::vector<NumaNode> ReadNumaNodes(const std::vector<int>& processors, const std::string& root = "");

}  // namespace saccade::server
