// What /proc tells about the machine and this process, parsed. Each function returns nothing if the text is
// not what the kernel writes.
#pragma once

#include <optional>
#include <string>

namespace saccade::server {

// Clock ticks since the machine started, all processors together.
struct CpuTicks {
  double busy = 0;
  double total = 0;
};
std::optional<CpuTicks> ParseCpuTicks(const std::string& stat);

struct Memory {
  double total_bytes = 0;
  double available_bytes = 0;
};
std::optional<Memory> ParseMemory(const std::string& meminfo);

struct ProcessStat {
  double cpu_ticks = 0;
  // Since the machine started.
  double start_ticks = 0;
  double virtual_bytes = 0;
  double resident_pages = 0;
};
std::optional<ProcessStat> ParseProcessStat(const std::string& self_stat);

// Seconds since 1970 at which the machine started.
std::optional<double> ParseBootTime(const std::string& stat);

}  // namespace saccade::server
