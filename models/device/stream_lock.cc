#include "models/device/stream_lock.h"

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace saccade::models {
namespace {

// The lock of the stream that the calling thread's pass is on, or null.
thread_local StreamLock* lock_of_thread = nullptr;

// LibTorch has so many streams for each GPU, and hands them out in turn.
constexpr int kStreamsOfPool = 32;

}  // namespace

StreamLock::Counts StreamLock::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void StreamLock::BeginPass() {
  std::unique_lock lock(mutex_);
  ++counts_.waiting_passes;
  changed_.wait(lock, [this] { return !recording_ && counts_.waiting_recordings == 0; });
  --counts_.waiting_passes;
  ++counts_.passes;
}

void StreamLock::EndPass() {
  const std::lock_guard lock(mutex_);
  --counts_.passes;
  changed_.notify_all();
}

void StreamLock::BeginRecording() {
  std::unique_lock lock(mutex_);
  // The pass does not count while it waits: two passes that both are to be recorded would wait for each
  // other.
  --counts_.passes;
  ++counts_.waiting_recordings;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !recording_ && counts_.passes == 0; });
  --counts_.waiting_recordings;
  recording_ = true;
}

void StreamLock::EndRecording() {
  const std::lock_guard lock(mutex_);
  recording_ = false;
  ++counts_.passes;
  changed_.notify_all();
}

StreamPass::StreamPass(StreamLock& lock)
    : outer_(lock_of_thread), lock_(lock_of_thread == &lock ? nullptr : &lock) {
  if (lock_ == nullptr) return;
  lock_->BeginPass();
  lock_of_thread = lock_;
}

StreamPass::~StreamPass() {
  if (lock_ == nullptr) return;
  lock_of_thread = outer_;
  lock_->EndPass();
}

StreamRecording::StreamRecording() : lock_(lock_of_thread) {
  if (lock_ == nullptr) return;
  lock_->BeginRecording();
  cache_ = std::unique_lock(GpuCacheMutex());
}

StreamRecording::~StreamRecording() {
  if (lock_ == nullptr) return;
  cache_.unlock();
  lock_->EndRecording();
}

std::mutex& GpuCacheMutex() {
  static std::mutex mutex;
  return mutex;
}

LockedStream TakeStream(const std::function<c10::Stream()>& draw) {
  static std::mutex mutex;
  static std::unordered_map<c10::Stream, std::weak_ptr<StreamLock>> locks;
  const std::lock_guard guard(mutex);
  std::optional<c10::Stream> best;
  int64_t fewest = 0;
  for (int drawn = 0; drawn < kStreamsOfPool && (!best || fewest > 0); ++drawn) {
    const c10::Stream stream = draw();
    const auto known = locks.find(stream);
    const int64_t users = known == locks.end() ? 0 : known->second.use_count();
    if (best && users >= fewest) continue;
    best = stream;
    fewest = users;
  }
  std::weak_ptr<StreamLock>& known = locks[*best];
  std::shared_ptr<StreamLock> lock = known.lock();
  if (lock == nullptr) known = lock = std::make_shared<StreamLock>();
  return {*best, std::move(lock)};
}

}  // namespace saccade::models
