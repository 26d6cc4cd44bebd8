// Metrics of the machine (Triton's names) and of this process (Prometheus' usual names), read when scraped.
#pragma once

#include <prometheus/registry.h>

#include "server/metrics/procfs.h"

namespace saccade::server {

// Not thread-safe.
class MachineMetrics {
 public:
  explicit MachineMetrics(prometheus::Registry& registry);

  // Reads /proc. Values that cannot be read stay unchanged.
  void Update();

 private:
  void UpdateMachine();
  void UpdateProcess();
  void UpdateFileDescriptors();

  CpuTicks last_cpu_;
  prometheus::Gauge& cpu_utilization_;
  prometheus::Gauge& memory_total_;
  prometheus::Gauge& memory_used_;
  prometheus::Counter& process_cpu_seconds_;
  prometheus::Gauge& resident_memory_;
  prometheus::Gauge& allocated_memory_;
  prometheus::Gauge& virtual_memory_;
  prometheus::Gauge& start_time_;
  prometheus::Gauge& open_fds_;
  prometheus::Gauge& max_fds_;
};

}  // namespace saccade::server
