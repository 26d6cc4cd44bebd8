#include "server/metrics/procfs.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace saccade::server {
namespace {

// The number after `key`, which starts a line.
std::optional<double> Value(const std::string& text, const std::string& key) {
  const size_t at = text.rfind(key, 0) == 0 ? 0 : text.find("\n" + key);
  if (at == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(text.find(key, at) + key.size(), 64));
  double value = 0;
  if (!(rest >> value)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> ReadProcFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<CpuTicks> ParseCpuTicks(const std::string& stat) {
  std::istringstream line(stat.substr(0, stat.find('\n')));
  std::string label;
  line >> label;
  if (label != "cpu") return std::nullopt;
  // Fields: user nice system idle iowait irq softirq steal. Guest time is already part of user time.
  CpuTicks ticks;
  for (int field = 0; field < 8; ++field) {
    double value = 0;
    if (!(line >> value)) return std::nullopt;
    ticks.total += value;
    if (field != 3 && field != 4) ticks.busy += value;
  }
  return ticks;
}

std::optional<Memory> ParseMemory(const std::string& meminfo) {
  const auto total = Value(meminfo, "MemTotal:");
  const auto available = Value(meminfo, "MemAvailable:");
  if (!total || !available) return std::nullopt;
  return Memory{*total * 1024, *available * 1024};
}

std::optional<ProcessStat> ParseProcessStat(const std::string& self_stat) {
  // The program's name is in parentheses and may itself contain any character, including parentheses.
  const size_t bracket = self_stat.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  std::istringstream rest(self_stat.substr(bracket + 1));
  std::string state;
  rest >> state;
  ProcessStat stat;
  // Fields are numbered as in proc(5), where the state is field 3.
  for (int field = 4; field <= 24; ++field) {
    double value = 0;
    if (!(rest >> value)) return std::nullopt;
    if (field == 14 || field == 15) stat.cpu_ticks += value;
    if (field == 22) stat.start_ticks = value;
    if (field == 23) stat.virtual_bytes = value;
    if (field == 24) stat.resident_pages = value;
  }
  return stat;
}

int64_t ResidentBytes() {
  const auto process = ParseProcessStat(ReadProcFile("/proc/self/stat").value_or(""));
  if (!process) return 0;
  return static_cast<int64_t>(process->resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
}

std::optional<double> ParseBootTime(const std::string& stat) { return Value(stat, "btime "); }

}  // namespace saccade::server
