// Reads and parses files of /proc about the machine and this process. Each function that parses returns
// nullopt if the text is not in the kernel's format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace saccade::server {

// The content of a file; nullopt if it cannot be read.
std::optional<std::string> ReadProcFile(const std::string& path);

// Clock ticks since boot, over all processors.
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
  // Counted since boot.
  double start_ticks = 0;
  double virtual_bytes = 0;
  double resident_pages = 0;
};
std::optional<ProcessStat> ParseProcessStat(const std::string& self_stat);

// Memory that this process holds, in bytes; 0 if /proc/self/stat cannot be read.
int64_t ResidentBytes();

// The time of boot, in seconds since 1970.
std::optional<double> ParseBootTime(const std::string& stat);

}  // namespace saccade::server
