#include "server/metrics/gpus.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"

namespace saccade::server {
namespace {

using GaugeFamily = prometheus::Family<prometheus::Gauge>;

GaugeFamily& AddGauges(prometheus::Registry& registry, const std::string& name, const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

void RaiseTo(prometheus::Counter& counter, double value) {
  counter.Increment(std::max(0.0, value - counter.Value()));
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
                   .Register(registry)),
        reserved(AddGauges(registry, "saccade_gpu_memory_reserved_bytes",
                           "The GPU's memory that LibTorch holds in this daemon: for tensors, for CUDA "
                           "graphs, and for later passes.")),
        allocated(AddGauges(registry, "saccade_gpu_memory_allocated_bytes",
                            "Of the GPU's memory that LibTorch holds in this daemon, what tensors have "
                            "now.")),
        retries(prometheus::BuildCounter()
                    .Name("saccade_gpu_memory_retries_total")
                    .Help("Allocations of the GPU's memory that failed until LibTorch had given back what it "
                          "held for later passes.")
                    .Register(registry)) {}

  GaugeFamily& utilization;
  GaugeFamily& memory_total;
  GaugeFamily& memory_used;
  GaugeFamily& power;
  GaugeFamily& power_limit;
  prometheus::Family<prometheus::Counter>& energy;
  GaugeFamily& reserved;
  GaugeFamily& allocated;
  prometheus::Family<prometheus::Counter>& retries;
};

GpuMetrics::GpuMetrics(prometheus::Registry& registry, std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {
  if (nvml_ != nullptr) families_ = std::make_unique<Families>(registry);
}

GpuMetrics::~GpuMetrics() = default;

GpuMemoryUse GpuMetrics::UseOf(const std::string& uuid) const {
  for (const GpuMemoryUse& use : uses_) {
    if (!use.uuid.empty() && absl::EndsWith(uuid, use.uuid)) return use;
  }
  return {};
}

void GpuMetrics::Update() {
  if (nvml_ == nullptr) return;
  for (const GpuReading& gpu : nvml_->Read()) {
    const prometheus::Labels labels = {{"gpu_uuid", gpu.uuid}};
    Set(families_->utilization, labels, gpu.utilization);
    Set(families_->memory_total, labels, gpu.memory_total_bytes);
    Set(families_->memory_used, labels, gpu.memory_used_bytes);
    Set(families_->power, labels, gpu.power_watts);
    Set(families_->power_limit, labels, gpu.power_limit_watts);
    if (gpu.energy_joules) RaiseTo(families_->energy.Add(labels), *gpu.energy_joules);
    if (gpu.divided) continue;  // LibTorch has its instances.
    const GpuMemoryUse use = UseOf(gpu.uuid);
    Set(families_->reserved, labels, static_cast<double>(use.reserved_bytes));
    Set(families_->allocated, labels, static_cast<double>(use.allocated_bytes));
    RaiseTo(families_->retries.Add(labels), static_cast<double>(use.retries));
  }
}

}  // namespace saccade::server
