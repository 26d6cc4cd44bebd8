// Stands in for CUDA's page-locked memory in tests without a GPU.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace saccade::models::testing {

// While it lives, LibTorch has it for GPUs. Its tensors must not outlive it.
class FakeHostAllocator : public at::HostAllocator {
 public:
  FakeHostAllocator() { at::setHostAllocator(c10::kCUDA, this, kPriority); }
  ~FakeHostAllocator() override { at::setHostAllocator(c10::kCUDA, nullptr, kPriority); }
  FakeHostAllocator(const FakeHostAllocator&) = delete;
  FakeHostAllocator& operator=(const FakeHostAllocator&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override {
    TORCH_CHECK(!fails, "CUDA error: out of memory");
    ++allocated;
    void* const data = std::malloc(bytes);
    return {data, data, &std::free, c10::DeviceType::CPU};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  bool record_event(void* /*data*/, void* /*context*/, c10::Stream /*stream*/) override { return true; }
  void empty_cache() override { ++emptied; }
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}

  bool fails = false;
  int allocated = 0;
  int emptied = 0;

 private:
  static constexpr uint8_t kPriority = 255;
};

}  // namespace saccade::models::testing
