#include "models/device/gpu_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "models/device/stream_lock.h"
#include "models/testing/fake_host_allocator.h"

namespace saccade::models {
namespace {

// Stands in for CUDA's allocator.
class FakeAllocator : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t) override { return {}; }
  void copy_data(void*, const void*, std::size_t) const override {}
  bool initialized() override { return is_initialized; }
  void emptyCache(c10::MempoolId_t) override {
    ++emptied;
    on_empty();
    TORCH_CHECK(!fails, "CUDA error: an illegal memory access was encountered");
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex gpu) override {
    TORCH_CHECK(gpu == 1, "invalid device argument ", static_cast<int>(gpu));
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.reserved_bytes[kAll].current = 300;
    stats.reserved_bytes[kAll].peak = 400;
    stats.allocated_bytes[kAll].current = 100;
    stats.num_alloc_retries = 5;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}

  bool is_initialized = true;
  bool fails = false;
  int emptied = 0;
  std::function<void()> on_empty = [] {};
};

class GpuMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { c10::SetAllocator(c10::kCUDA, &allocator_, /*priority=*/255); }
  void TearDown() override { c10::SetAllocator(c10::kCUDA, before_, /*priority=*/255); }

  c10::Allocator* const before_ = c10::GetAllocator(c10::kCUDA);
  FakeAllocator allocator_;
};

TEST_F(GpuMemoryTest, CachedMemoryIsGivenBack) {
  FreeUnusedGpuMemory();
  EXPECT_EQ(allocator_.emptied, 1);
}

TEST_F(GpuMemoryTest, PageLockedMemoryIsGivenBackToo) {
  testing::FakeHostAllocator pinned;
  FreeUnusedGpuMemory();
  EXPECT_EQ(pinned.emptied, 1);
}

TEST_F(GpuMemoryTest, WhatIsHeldOfAGpu) {
  const std::optional<GpuMemory> memory = ReadGpuMemory(1);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->reserved_bytes, 300);
  EXPECT_EQ(memory->allocated_bytes, 100);
  EXPECT_EQ(memory->retries, 5);
  EXPECT_FALSE(ReadGpuMemory(2)) << "there is no such GPU";
  allocator_.is_initialized = false;
  EXPECT_FALSE(ReadGpuMemory(1));
  c10::SetAllocator(c10::kCUDA, nullptr, /*priority=*/255);
  EXPECT_FALSE(ReadGpuMemory(1));
}

TEST_F(GpuMemoryTest, GpusThatWereNotUsedAreLeftAlone) {
  allocator_.is_initialized = false;
  FreeUnusedGpuMemory();
  c10::SetAllocator(c10::kCUDA, nullptr, /*priority=*/255);
  FreeUnusedGpuMemory();
  EXPECT_EQ(allocator_.emptied, 0);
}

TEST_F(GpuMemoryTest, ALostGpuDoesNotEndTheProcess) {
  allocator_.fails = true;
  EXPECT_NO_THROW(FreeUnusedGpuMemory());
}

TEST_F(GpuMemoryTest, NothingIsRecordedMeanwhile) {
  allocator_.on_empty = [] {
    std::thread([] {
      const std::unique_lock recording(GpuCacheMutex(), std::try_to_lock);
      EXPECT_FALSE(recording.owns_lock());
    }).join();
  };
  FreeUnusedGpuMemory();
  EXPECT_EQ(allocator_.emptied, 1);
}

}  // namespace
}  // namespace saccade::models
