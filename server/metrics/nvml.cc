#include "server/metrics/nvml.h"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace saccade::server {
namespace {

// Types of NVML's stable interface.
using Device = struct nvmlDevice_st*;
constexpr int kSuccess = 0;
struct Utilization {
  unsigned int gpu;
  unsigned int memory;
};
struct MemoryInfo {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

constexpr double kMilli = 1e-3;

}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned int*) = nullptr;
  int (*handle)(unsigned int, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned int) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, MemoryInfo*) = nullptr;
  int (*power)(Device, unsigned int*) = nullptr;
  int (*power_limit)(Device, unsigned int*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;

  bool Find(void* library) {
    const auto find = [library](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown) &&
           find("nvmlDeviceGetCount_v2", count) && find("nvmlDeviceGetHandleByIndex_v2", handle) &&
           find("nvmlDeviceGetUUID", uuid) && find("nvmlDeviceGetUtilizationRates", utilization) &&
           find("nvmlDeviceGetMemoryInfo", memory) && find("nvmlDeviceGetPowerUsage", power) &&
           find("nvmlDeviceGetEnforcedPowerLimit", power_limit) &&
           find("nvmlDeviceGetTotalEnergyConsumption", energy);
  }

  std::optional<GpuReading> Read(unsigned int index) const {
    Device device = nullptr;
    std::array<char, 96> name{};
    if (handle(index, &device) != kSuccess || uuid(device, name.data(), name.size()) != kSuccess) {
      return std::nullopt;
    }
    GpuReading reading;
    reading.uuid = name.data();
    if (Utilization rates{}; utilization(device, &rates) == kSuccess) reading.utilization = rates.gpu / 100.0;
    if (MemoryInfo info{}; memory(device, &info) == kSuccess) {
      reading.memory_total_bytes = static_cast<double>(info.total);
      reading.memory_used_bytes = static_cast<double>(info.used);
    }
    unsigned int milliwatts = 0;
    if (power(device, &milliwatts) == kSuccess) reading.power_watts = kMilli * milliwatts;
    if (power_limit(device, &milliwatts) == kSuccess) reading.power_limit_watts = kMilli * milliwatts;
    unsigned long long millijoules = 0;
    if (energy(device, &millijoules) == kSuccess) {
      reading.energy_joules = kMilli * static_cast<double>(millijoules);
    }
    return reading;
  }
};

Nvml::Nvml(void* library, std::unique_ptr<Functions> functions)
    : library_(library), functions_(std::move(functions)) {}

std::unique_ptr<Nvml> Nvml::Open(const char* library) {
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return nullptr;
  auto functions = std::make_unique<Functions>();
  if (!functions->Find(opened) || functions->init() != kSuccess) {
    dlclose(opened);
    return nullptr;
  }
  return std::unique_ptr<Nvml>(new Nvml(opened, std::move(functions)));
}

Nvml::~Nvml() {
  functions_->shutdown();
  dlclose(library_);
}

std::vector<GpuReading> Nvml::Read() const {
  std::vector<GpuReading> readings;
  unsigned int devices = 0;
  if (functions_->count(&devices) != kSuccess) return readings;
  for (unsigned int i = 0; i < devices; ++i) {
    if (auto reading = functions_->Read(i)) readings.push_back(*std::move(reading));
  }
  return readings;
}

}  // namespace saccade::server
