// What the driver tells about GPUs. Its library is opened where there is one; nothing is linked with it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saccade::server {

// What the driver does not know of a GPU is left out.
struct GpuReading {
  std::string uuid;
  // 0 to 1, over the driver's last sampling period.
  std::optional<double> utilization;
  std::optional<double> memory_total_bytes;
  std::optional<double> memory_used_bytes;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;
  // Since the driver was loaded.
  std::optional<double> energy_joules;
};

// Not thread-safe.
class Nvml {
 public:
  // Null if there is no such library, or no driver behind it.
  static std::unique_ptr<Nvml> Open(const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // One for each GPU that can be asked. Takes milliseconds.
  std::vector<GpuReading> Read() const;

 private:
  struct Functions;
  Nvml(void* library, std::unique_ptr<Functions> functions);

  void* const library_;
  const std::unique_ptr<Functions> functions_;
};

}  // namespace saccade::server
