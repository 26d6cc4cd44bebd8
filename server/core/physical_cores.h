// The physical cores of a machine, each of which may run several threads as processors of their own.
#pragma once

#include <string>
#include <vector>

namespace saccade::server {

// The processors of one physical core.
using PhysicalCore = std::vector<int>;

// Sorts `processors` by physical core, from the files in /sys/devices/system/cpu below `root`. The cores are
// in the order of their first processors in `processors`. Each processor is returned as a core of its own if
// the files do not tell where one of them belongs.
std::vector<PhysicalCore> ReadPhysicalCores(const std::vector<int>& processors, const std::string& root = "");

}  // namespace saccade::server
