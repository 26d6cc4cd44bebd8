#include "server/metrics/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <iterator>
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
  // Null if the driver does not know MIG.
  int (*max_instances)(Device, unsigned int*) = nullptr;
  int (*instance)(Device, unsigned int, Device*) = nullptr;

  bool Find(void* library) {
    const auto find = [library](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    find("nvmlDeviceGetMaxMigDeviceCount", max_instances);
    find("nvmlDeviceGetMigDeviceHandleByIndex", instance);
    return find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown) &&
           find("nvmlDeviceGetCount_v2", count) && find("nvmlDeviceGetHandleByIndex_v2", handle) &&
           find("nvmlDeviceGetUUID", uuid) && find("nvmlDeviceGetUtilizationRates", utilization) &&
           find("nvmlDeviceGetMemoryInfo", memory) && find("nvmlDeviceGetPowerUsage", power) &&
           find("nvmlDeviceGetEnforcedPowerLimit", power_limit) &&
           find("nvmlDeviceGetTotalEnergyConsumption", energy);
  }

  // Adds the reading of a GPU, then those of its instances.
  void Read(unsigned int index, std::vector<GpuReading>* readings) const {
    Device device = nullptr;
    if (handle(index, &device) != kSuccess) return;
    std::vector<GpuReading> instances = Instances(device);
    if (auto reading = Named(device)) {
      reading->divided = !instances.empty();
      // The driver tells the memory of all instances together, also of those that others use.
      if (!reading->divided) ReadUse(device, &*reading);
      ReadPower(device, &*reading);
      readings->push_back(*std::move(reading));
    }
    std::move(instances.begin(), instances.end(), std::back_inserter(*readings));
  }

 private:
  std::optional<GpuReading> Named(Device device) const {
    std::array<char, 96> name{};
    if (uuid(device, name.data(), name.size()) != kSuccess) return std::nullopt;
    GpuReading reading;
    reading.uuid = name.data();
    return reading;
  }

  // Empty if MIG does not divide the GPU. A container sees only the instances that it was given.
  std::vector<GpuReading> Instances(Device gpu) const {
    std::vector<GpuReading> readings;
    unsigned int max_count = 0;
    if (max_instances == nullptr || instance == nullptr || max_instances(gpu, &max_count) != kSuccess) {
      return readings;
    }
    for (unsigned int i = 0; i < max_count; ++i) {
      // Not every number has an instance.
      Device device = nullptr;
      if (instance(gpu, i, &device) != kSuccess) continue;
      auto reading = Named(device);
      if (!reading) continue;
      ReadUse(device, &*reading);
      // An instance's power is not known; a driver may give that of the GPU in its place.
      readings.push_back(*std::move(reading));
    }
    return readings;
  }

  void ReadUse(Device device, GpuReading* reading) const {
    if (Utilization rates{}; utilization(device, &rates) == kSuccess) {
      reading->utilization = rates.gpu / 100.0;
    }
    if (MemoryInfo info{}; memory(device, &info) == kSuccess) {
      reading->memory_total_bytes = static_cast<double>(info.total);
      reading->memory_used_bytes = static_cast<double>(info.used);
    }
  }

  void ReadPower(Device device, GpuReading* reading) const {
    unsigned int milliwatts = 0;
    if (power(device, &milliwatts) == kSuccess) reading->power_watts = kMilli * milliwatts;
    if (power_limit(device, &milliwatts) == kSuccess) reading->power_limit_watts = kMilli * milliwatts;
    unsigned long long millijoules = 0;
    if (energy(device, &millijoules) == kSuccess) {
      reading->energy_joules = kMilli * static_cast<double>(millijoules);
    }
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
  for (unsigned int i = 0; i < devices; ++i) functions_->Read(i, &readings);
  return readings;
}

}  // namespace saccade::server
