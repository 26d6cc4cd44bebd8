// Reads GPU metrics from the driver through NVML, whose library is opened at run time if it exists.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saccade::server {

// A GPU, or an instance of one that MIG divides. Values that the driver does not support are missing: of an
// instance it knows the memory alone.
struct GpuReading {
  std::string uuid;  // begins with GPU-, or for an instance with MIG-
  // MIG divides the GPU into instances that this process may see. Their readings follow, and have what is
  // known of the memory; this one has neither memory nor utilization.
  bool divided = false;
  // 0 to 1, over the driver's last sampling period.
  std::optional<double> utilization;
  std::optional<double> memory_total_bytes;
  std::optional<double> memory_used_bytes;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;
  // Counted since the driver was loaded.
  std::optional<double> energy_joules;
};

// Not thread-safe.
class Nvml {
 public:
  // Null if the library cannot be opened or initialised, e.g. without a driver.
  static std::unique_ptr<Nvml> Open(const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Readings of the GPUs, and of MIG's instances, that can be queried. Takes milliseconds.
  std::vector<GpuReading> Read() const;

 private:
  struct Functions;
  Nvml(void* library, std::unique_ptr<Functions> functions);

  void* const library_;
  const std::unique_ptr<Functions> functions_;
};

}  // namespace saccade::server
