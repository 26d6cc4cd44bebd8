#include "server/metrics/machine.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "models/weights/format/file_contents.h"
#include "server/core/free_memory.h"

namespace saccade::server {
namespace {

std::string ReadAll(const char* path) { return ReadProcFile(path).value_or(""); }

prometheus::Gauge& AddGauge(prometheus::Registry& registry, const std::string& name,
                            const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

prometheus::Counter& AddCounter(prometheus::Registry& registry, const std::string& name,
                                const std::string& help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

MachineMetrics::MachineMetrics(prometheus::Registry& registry)
    : last_cpu_(ParseCpuTicks(ReadAll("/proc/stat")).value_or(CpuTicks{})),
      cpu_utilization_(AddGauge(registry, "nv_cpu_utilization",
                                "Share of the machine's processors in use since the last scrape.")),
      memory_total_(AddGauge(registry, "nv_cpu_memory_total_bytes", "The machine's memory.")),
      memory_used_(
          AddGauge(registry, "nv_cpu_memory_used_bytes", "The machine's memory that is not available.")),
      process_cpu_seconds_(
          AddCounter(registry, "process_cpu_seconds_total",
                     "Processor time of the daemon, without its decode workers' processes.")),
      resident_memory_(AddGauge(registry, "process_resident_memory_bytes",
                                "Memory the daemon holds, without its decode workers' processes.")),
      allocated_memory_(AddGauge(
          registry, "saccade_memory_allocated_bytes",
          "Memory that the daemon has allocated and not freed, with weights as they were read from files, "
          "without its decode workers' processes and the code that oneDNN generates. The allocator "
          "holds more, for allocations to come.")),
      virtual_memory_(AddGauge(registry, "process_virtual_memory_bytes",
                               "The daemon's address space, without its decode workers' processes.")),
      start_time_(AddGauge(registry, "process_start_time_seconds",
                           "When the daemon started, in seconds since 1970.")),
      open_fds_(AddGauge(registry, "process_open_fds",
                         "File descriptors open in the daemon, without its decode workers' processes.")),
      max_fds_(AddGauge(registry, "process_max_fds", "File descriptors that may be open in the daemon.")) {}

void MachineMetrics::Update() {
  UpdateMachine();
  UpdateProcess();
  UpdateFileDescriptors();
}

void MachineMetrics::UpdateMachine() {
  const auto cpu = ParseCpuTicks(ReadAll("/proc/stat"));
  // Two scrapes may fall into the same tick.
  if (cpu && cpu->total > last_cpu_.total) {
    const double share = (cpu->busy - last_cpu_.busy) / (cpu->total - last_cpu_.total);
    cpu_utilization_.Set(std::clamp(share, 0.0, 1.0));
    last_cpu_ = *cpu;
  }
  if (const auto memory = ParseMemory(ReadAll("/proc/meminfo"))) {
    memory_total_.Set(memory->total_bytes);
    memory_used_.Set(memory->total_bytes - memory->available_bytes);
  }
}

void MachineMetrics::UpdateProcess() {
  const auto process = ParseProcessStat(ReadAll("/proc/self/stat"));
  if (!process) return;
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  process_cpu_seconds_.Increment(
      std::max(0.0, process->cpu_ticks / ticks_per_second - process_cpu_seconds_.Value()));
  allocated_memory_.Set(static_cast<double>(AllocatedBytes() + models::FileContents::HeldByAll()));
  resident_memory_.Set(process->resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
  virtual_memory_.Set(process->virtual_bytes);
  if (const auto boot = ParseBootTime(ReadAll("/proc/stat"))) {
    start_time_.Set(*boot + process->start_ticks / ticks_per_second);
  }
}

void MachineMetrics::UpdateFileDescriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator open("/proc/self/fd", error);
  // One of them belongs to the listing itself.
  if (!error) open_fds_.Set(static_cast<double>(std::distance(begin(open), end(open)) - 1));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) max_fds_.Set(static_cast<double>(limit.rlim_cur));
}

}  // namespace saccade::server
