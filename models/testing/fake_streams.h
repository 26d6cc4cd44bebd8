// Stands in for CUDA's streams and events in tests without a GPU.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace saccade::models::testing {

// While it lives, LibTorch has it for CUDA's devices. Events must not outlive it. Not thread-safe.
class FakeStreams final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::StreamId kComputing = 1;  // the current stream at first
  static constexpr c10::StreamId kPriority = 9;   // the pool's only stream of high priority

  FakeStreams() : before_(Slot().exchange(this)) {}
  ~FakeStreams() override { Slot().store(before_); }
  FakeStreams(const FakeStreams&) = delete;
  FakeStreams& operator=(const FakeStreams&) = delete;

  static c10::Device Gpu() { return {c10::kCUDA, 0}; }
  static c10::Stream StreamOf(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, Gpu(), id); }
  c10::StreamId current() const { return current_; }
  // What happened, in order; streams and events by their numbers, events from 1.
  std::vector<std::string>& log() const { return log_; }

  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device /*device*/) const override { return Gpu(); }
  c10::Device getDevice() const override { return Gpu(); }
  void setDevice(c10::Device /*device*/) const override {}
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Stream getStream(c10::Device /*device*/) const override { return StreamOf(current_); }
  c10::Stream getStreamFromGlobalPool(c10::Device /*device*/, bool high_priority) const override {
    return StreamOf(high_priority ? kPriority : kComputing);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = StreamOf(current_);
    current_ = stream.id();
    return before;
  }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {
    *event = reinterpret_cast<void*>(++events_);
    log_.push_back("event " + Name(*event) + " on " + std::to_string(stream.id()));
  }
  void block(void* event, const c10::Stream& stream) const override {
    log_.push_back(std::to_string(stream.id()) + " waits for event " + Name(event));
  }
  void synchronizeEvent(void* event) const override {
    log_.push_back("thread waits for event " + Name(event));
  }
  void recordDataPtrOnStream(const c10::DataPtr& /*data*/, const c10::Stream& stream) const override {
    log_.push_back("memory is kept for " + std::to_string(stream.id()));
  }

 private:
  static std::atomic<const c10::impl::DeviceGuardImplInterface*>& Slot() {
    return c10::impl::device_guard_impl_registry.at(static_cast<size_t>(c10::kCUDA));
  }
  static std::string Name(void* event) { return std::to_string(reinterpret_cast<intptr_t>(event)); }

  const c10::impl::DeviceGuardImplInterface* const before_;
  mutable c10::StreamId current_ = kComputing;
  mutable intptr_t events_ = 0;
  mutable std::vector<std::string> log_;
};

}  // namespace saccade::models::testing
