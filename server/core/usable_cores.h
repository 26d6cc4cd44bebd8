// How many cores this process can keep busy: one number, which all parts of the daemon divide among them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace saccade::server {

// What limits this process.
struct CoreLimits {
  // Cores that it may run on. The threads of one physical core count once, because a forward pass fills it.
  int allowed = 1;
  // The processor time that its control groups grant for each second; nullopt if they set no limit.
  std::optional<double> quota;
};

// The processors that the calling thread may run on, ascending; empty if the system does not tell.
std::vector<int> AllowedProcessors();

// Reads the limits of a process that may run on `processors`, from the files /proc/self/cgroup,
// /sys/fs/cgroup (versions 1 and 2, all groups above its own) and /sys/devices/system/cpu below `root`. What
// cannot be read limits nothing.
CoreLimits ReadCoreLimits(const std::vector<int>& processors, const std::string& root = "");

// The smaller of both limits, at least 1. A part of a core counts as one: half a core of quota is used up by
// one thread that pauses, and one and a half by two.
int UsableCores(const CoreLimits& limits);

}  // namespace saccade::server
