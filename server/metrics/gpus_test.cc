#include "server/metrics/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Exposition(std::unique_ptr<Nvml> nvml) {
  prometheus::Registry registry;
  GpuMetrics gpus(registry, std::move(nvml));
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

TEST(GpuMetrics, NothingWithoutADriver) {
  EXPECT_EQ(Nvml::Open("libno-such-library.so"), nullptr);
  // This library exists, but is not NVML.
  EXPECT_EQ(Nvml::Open("libm.so.6"), nullptr);
  EXPECT_EQ(Exposition(nullptr), "");
}

}  // namespace
}  // namespace saccade::server
