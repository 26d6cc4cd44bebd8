#include "server/core/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/core/physical_cores.h"

namespace saccade::server {
namespace {

// The first line of a file; empty if there is none.
std::string LineOf(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

std::optional<double> NumberIn(const std::string& text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number)) return std::nullopt;
  return number;
}

// Version 2: "max 100000", or "150000 100000" for one and a half cores.
std::optional<double> QuotaOfVersion2(const std::string& folder) {
  const std::vector<std::string> words = absl::StrSplit(LineOf(folder + "/cpu.max"), ' ');
  if (words.size() != 2) return std::nullopt;
  const auto quota = NumberIn(words[0]);
  const auto period = NumberIn(words[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// Version 1: the quota is -1 if there is no limit.
std::optional<double> QuotaOfVersion1(const std::string& folder) {
  const auto quota = NumberIn(LineOf(folder + "/cpu.cfs_quota_us"));
  const auto period = NumberIn(LineOf(folder + "/cpu.cfs_period_us"));
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// The smallest quota of the group at `path` below `mount`, and of the groups above it.
template <typename Read>
std::optional<double> SmallestQuota(const std::string& mount, std::string path, Read read) {
  // A path out of the namespace is not below the mount. Its root is.
  if (absl::StrContains(path, "..")) path = "/";
  std::optional<double> smallest;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    const std::optional<double> quota = read(mount + path);
    if (quota && (!smallest || *quota < *smallest)) smallest = quota;
    if (path.empty()) return smallest;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

std::optional<double> ReadQuota(const std::string& root) {
  std::optional<double> smallest;
  std::ifstream groups(root + "/proc/self/cgroup");
  // "0::/pod/container" for version 2, "4:cpu,cpuacct:/pod/container" for version 1.
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    std::optional<double> quota;
    if (parts[1].empty()) {
      quota = SmallestQuota(root + "/sys/fs/cgroup", parts[2], QuotaOfVersion2);
    } else {
      const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
      if (std::find(controllers.begin(), controllers.end(), "cpu") == controllers.end()) continue;
      quota = SmallestQuota(root + "/sys/fs/cgroup/cpu", parts[2], QuotaOfVersion1);
    }
    if (quota && (!smallest || *quota < *smallest)) smallest = quota;
  }
  return smallest;
}

}  // namespace

std::vector<int> AllowedProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &set)) processors.push_back(processor);
  }
  return processors;
}

CoreLimits ReadCoreLimits(const std::vector<int>& processors, const std::string& root) {
  return {.allowed = std::max(1, static_cast<int>(ReadPhysicalCores(processors, root).size())),
          .quota = ReadQuota(root)};
}

int UsableCores(const CoreLimits& limits) {
  if (!limits.quota || *limits.quota >= limits.allowed) return std::max(1, limits.allowed);
  return std::max(1, static_cast<int>(std::ceil(*limits.quota)));
}

}  // namespace saccade::server
