#include "server/metrics/gpus.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace saccade::server {
namespace {

using GaugeFamily = prometheus::Family<prometheus::Gauge>;

GaugeFamily& AddGauges(prometheus::Registry& registry, const std::string& name, const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

void Set(GaugeFamily& family, const prometheus::Labels& gpu, std::optional<double> value) {
  if (value) family.Add(gpu).Set(*value);
}

}  // namespace

struct GpuMetrics::Families {
  explicit Families(prometheus::Registry& registry)
      : utilization(AddGauges(registry, "nv_gpu_utilization", "Share of time that the GPU computed.")),
        memory_total(AddGauges(registry, "nv_gpu_memory_total_bytes", "The GPU's memory.")),
        memory_used(AddGauges(registry, "nv_gpu_memory_used_bytes", "The GPU's memory in use.")),
        power(AddGauges(registry, "nv_gpu_power_usage", "Power usage of the GPU, in watts.")),
        power_limit(AddGauges(registry, "nv_gpu_power_limit", "Power limit of the GPU, in watts.")),
        energy(prometheus::BuildCounter()
                   .Name("nv_energy_consumption")
                   .Help("Energy used by the GPU since its driver was loaded, in joules.")
                   .Register(registry)) {}

  GaugeFamily& utilization;
  GaugeFamily& memory_total;
  GaugeFamily& memory_used;
  GaugeFamily& power;
  GaugeFamily& power_limit;
  prometheus::Family<prometheus::Counter>& energy;
};

GpuMetrics::GpuMetrics(prometheus::Registry& registry, std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {
  if (nvml_ != nullptr) families_ = std::make_unique<Families>(registry);
}

GpuMetrics::~GpuMetrics() = default;

void GpuMetrics::Update() {
  if (nvml_ == nullptr) return;
  for (const GpuReading& gpu : nvml_->Read()) {
    const prometheus::Labels labels = {{"gpu_uuid", gpu.uuid}};
    Set(families_->utilization, labels, gpu.utilization);
    Set(families_->memory_total, labels, gpu.memory_total_bytes);
    Set(families_->memory_used, labels, gpu.memory_used_bytes);
    Set(families_->power, labels, gpu.power_watts);
    Set(families_->power_limit, labels, gpu.power_limit_watts);
    if (gpu.energy_joules) {
      prometheus::Counter& energy = families_->energy.Add(labels);
      energy.Increment(std::max(0.0, *gpu.energy_joules - energy.Value()));
    }
  }
}

}  // namespace saccade::server
