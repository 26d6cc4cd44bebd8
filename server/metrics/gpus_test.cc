#include "server/metrics/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// While it lives, MIG is on for the first of the fake's GPUs, which has so many instances.
class FakeMig {
 public:
  explicit FakeMig(const char* instances) { setenv("SACCADE_FAKE_MIG", instances, 1); }
  ~FakeMig() { unsetenv("SACCADE_FAKE_MIG"); }
  FakeMig(const FakeMig&) = delete;
  FakeMig& operator=(const FakeMig&) = delete;
};

std::string Exposition(std::unique_ptr<Nvml> nvml, std::vector<GpuMemoryUse> uses = {}) {
  prometheus::Registry registry;
  GpuMetrics gpus(registry, std::move(nvml));
  gpus.SetMemoryUse(std::move(uses));
  gpus.Update();
  gpus.Update();
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

TEST(GpuMetrics, WhatTheDriverTells) {
  auto nvml = Nvml::Open(SACCADE_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  const std::string text = Exposition(std::move(nvml));
  for (const char* line :
       {"nv_gpu_utilization{gpu_uuid=\"GPU-1\"} 0.75\n",
        "nv_gpu_memory_total_bytes{gpu_uuid=\"GPU-1\"} 1000\n",
        "nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-1\"} 400\n",
        "nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-2\"} 400\n",
        "nv_gpu_power_usage{gpu_uuid=\"GPU-1\"} 250.5\n", "nv_gpu_power_limit{gpu_uuid=\"GPU-1\"} 700\n",
        "nv_energy_consumption{gpu_uuid=\"GPU-1\"} 12345\n", "# TYPE nv_energy_consumption counter\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("nv_gpu_utilization{gpu_uuid=\"GPU-2\"}")));
}

TEST(GpuMetrics, InstancesOfMigHaveTheirMemoryAndTheGpuItsPower) {
  const FakeMig mig("2");
  auto nvml = Nvml::Open(SACCADE_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  std::vector<std::string> uuids;
  for (const GpuReading& reading : nvml->Read()) {
    uuids.push_back(reading.uuid);
    EXPECT_EQ(reading.divided, reading.uuid == "GPU-1");
  }
  EXPECT_THAT(uuids, ElementsAre("GPU-1", "MIG-1", "MIG-2", "GPU-2"));
  const std::string text = Exposition(std::move(nvml));
  for (const char* line :
       {"nv_gpu_memory_total_bytes{gpu_uuid=\"MIG-1\"} 120\n",
        "nv_gpu_memory_used_bytes{gpu_uuid=\"MIG-1\"} 48\n",
        "nv_gpu_memory_total_bytes{gpu_uuid=\"MIG-2\"} 250\n",
        "nv_gpu_memory_used_bytes{gpu_uuid=\"MIG-2\"} 10\n",
        "nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-2\"} 400\n",
        "nv_gpu_power_usage{gpu_uuid=\"GPU-1\"} 250.5\n", "nv_gpu_power_limit{gpu_uuid=\"GPU-1\"} 700\n",
        "nv_energy_consumption{gpu_uuid=\"GPU-1\"} 12345\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  // The GPU's memory would count that of the instances twice, and the instances' power that of the GPU.
  for (const char* series :
       {"nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-1\"}", "nv_gpu_memory_total_bytes{gpu_uuid=\"GPU-1\"}",
        "nv_gpu_power_usage{gpu_uuid=\"MIG-1\"}", "nv_gpu_power_limit{gpu_uuid=\"MIG-2\"}",
        "nv_energy_consumption{gpu_uuid=\"MIG-1\"}", "nv_gpu_utilization{"}) {
    EXPECT_THAT(text, Not(HasSubstr(series)));
  }
}

TEST(GpuMetrics, WhatLibTorchHoldsIsThatOfTheGpuWithTheSameUuid) {
  auto nvml = Nvml::Open(SACCADE_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  const GpuMemoryUse unnamed = {.uuid = "", .reserved_bytes = 1, .allocated_bytes = 1, .retries = 1};
  const GpuMemoryUse second = {.uuid = "2", .reserved_bytes = 300, .allocated_bytes = 100, .retries = 5};
  const std::string text = Exposition(std::move(nvml), {unnamed, second});
  for (const char* line : {"saccade_gpu_memory_reserved_bytes{gpu_uuid=\"GPU-2\"} 300\n",
                           "saccade_gpu_memory_allocated_bytes{gpu_uuid=\"GPU-2\"} 100\n",
                           "saccade_gpu_memory_retries_total{gpu_uuid=\"GPU-2\"} 5\n",
                           "# TYPE saccade_gpu_memory_retries_total counter\n",
                           "saccade_gpu_memory_reserved_bytes{gpu_uuid=\"GPU-1\"} 0\n",
                           "saccade_gpu_memory_allocated_bytes{gpu_uuid=\"GPU-1\"} 0\n",
                           "saccade_gpu_memory_retries_total{gpu_uuid=\"GPU-1\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(GpuMetrics, WhatLibTorchHoldsOfAnInstanceOfMig) {
  const FakeMig mig("2");
  auto nvml = Nvml::Open(SACCADE_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  const std::string text = Exposition(std::move(nvml), {{.uuid = "1", .reserved_bytes = 30}});
  EXPECT_THAT(text, HasSubstr("saccade_gpu_memory_reserved_bytes{gpu_uuid=\"MIG-1\"} 30\n"));
  EXPECT_THAT(text, Not(HasSubstr("saccade_gpu_memory_reserved_bytes{gpu_uuid=\"GPU-1\"}")));
}

TEST(GpuMetrics, AGpuWhoseInstancesAreNotSeenIsAWholeOne) {
  const FakeMig mig("0");
  auto nvml = Nvml::Open(SACCADE_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  const std::string text = Exposition(std::move(nvml));
  EXPECT_THAT(text, HasSubstr("nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-1\"} 400\n"));
  EXPECT_THAT(text, Not(HasSubstr("MIG-")));
}

TEST(GpuMetrics, ADriverThatDoesNotKnowMig) {
  const FakeMig mig("2");
  auto nvml = Nvml::Open(SACCADE_FAKE_OLD_NVML);
  ASSERT_NE(nvml, nullptr);
  const std::string text = Exposition(std::move(nvml));
  EXPECT_THAT(text, HasSubstr("nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-1\"} 400\n"));
  EXPECT_THAT(text, Not(HasSubstr("MIG-")));
}

TEST(GpuMetrics, NothingWithoutADriver) {
  EXPECT_EQ(Nvml::Open("libno-such-library.so"), nullptr);
  // This library exists, but is not NVML.
  EXPECT_EQ(Nvml::Open("libm.so.6"), nullptr);
  EXPECT_EQ(Exposition(nullptr), "");
}

}  // namespace
}  // namespace saccade::server
