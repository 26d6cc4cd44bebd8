// The cache of whole maps that CUDA calls share (expatt_map.cuh), without CUDA, so that it is tested without
// a GPU. A call that finds no map computes the entries itself, with the same result.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

// What the entries of a map depend on.
struct ExpattMapKey {
  int device = 0;
  ExpattKind kind = ExpattKind::kConstant;
  int64_t height = 0;
  int64_t width = 0;
  float sigma = 0;  // 0 if the kind ignores it
  Dtype dtype = Dtype::kFloat32;
  // Sigma is never NaN, so that the order is total.
  friend auto operator<=>(const ExpattMapKey&, const ExpattMapKey&) = default;
};

// Number of uses of a map by recordings that live.
using ExpattMapPins = std::shared_ptr<std::atomic<int>>;

// A map in device memory, which work on a stream fills. The destructor may run while the device still works:
// the memory is used again after that work.
class ExpattStoredMemory {
 public:
  ExpattStoredMemory() = default;
  ExpattStoredMemory(const ExpattStoredMemory&) = delete;
  ExpattStoredMemory& operator=(const ExpattStoredMemory&) = delete;
  virtual ~ExpattStoredMemory() = default;

  virtual const void* data() const = 0;
  // Prepares a use on the current stream, which is not recording: later work there waits until the map is
  // filled, and the memory is kept until that work is done. Does not block.
  virtual void UseOnCurrentStream() = 0;
  // Prepares a use by the recording on the current stream, and adds one to `pins` until that recording is
  // freed. Returns false, and changes nothing, if the map is not filled yet, for which a recording cannot
  // wait, or if CUDA cannot tell when the recording is freed.
  virtual bool UseInRecording(const ExpattMapPins& pins) = 0;
};

class ExpattMaps {
 public:
  // Most bytes of the maps of a device.
  static constexpr int64_t kMaxBytes = int64_t{256} << 20;
  // A map is dropped only if so many calls of Find() did not use it: if the maps in use do not all fit, those
  // that do are kept, instead of each being filled for one use.
  static constexpr int64_t kMinIdleCalls = 1024;
  static constexpr size_t kMaxSeen = 256;

  using Make = std::function<std::shared_ptr<ExpattStoredMemory>()>;

  // Returns the map for one use on the current stream, or null, if the call has to do without. The caller
  // holds it until its work has been enqueued. `make`, which may return null, allocates `bytes` and enqueues
  // what fills them: at the second call for a key, so that a map that is needed once is not stored. While
  // `recording`, nothing is made; a map that a recording uses is not dropped before the recording is freed.
  // Thread-safe; `make` runs with the cache locked.
  std::shared_ptr<ExpattStoredMemory> Find(const ExpattMapKey& key, int64_t bytes, bool recording,
                                           const Make& make) {
    const std::lock_guard lock(mutex_);
    ++calls_;
    if (const auto found = maps_.find(key); found != maps_.end()) {
      Entry& entry = found->second;
      if (!recording) {
        entry.memory->UseOnCurrentStream();
      } else if (!entry.memory->UseInRecording(entry.pins)) {
        return nullptr;
      }
      entry.used = calls_;
      return entry.memory;
    }
    if (recording || !SeenBefore(key) || !MakeRoom(key.device, bytes)) return nullptr;
    std::shared_ptr<ExpattStoredMemory> memory = make();
    if (memory == nullptr) return nullptr;
    maps_.emplace(key, Entry{memory, bytes, calls_, std::make_shared<std::atomic<int>>(0)});
    seen_.erase(key);
    return memory;
  }

  int64_t BytesOn(int device) {
    const std::lock_guard lock(mutex_);
    return Held(device);
  }

 private:
  struct Entry {
    std::shared_ptr<ExpattStoredMemory> memory;
    int64_t bytes;
    int64_t used;  // calls_ at the last use
    ExpattMapPins pins;
  };

  bool SeenBefore(const ExpattMapKey& key) {
    if (seen_.contains(key)) return true;
    if (seen_.size() >= kMaxSeen) seen_.clear();
    seen_.insert(key);
    return false;
  }

  int64_t Held(int device) const {
    int64_t held = 0;
    for (const auto& [key, entry] : maps_) held += key.device == device ? entry.bytes : 0;
    return held;
  }

  // Drops the least recently used maps until `bytes` more fit. Returns false if they do not.
  bool MakeRoom(int device, int64_t bytes) {
    int64_t held = Held(device);
    while (held + bytes > kMaxBytes) {
      auto oldest = maps_.end();
      for (auto at = maps_.begin(); at != maps_.end(); ++at) {
        if (at->first.device != device || *at->second.pins > 0) continue;
        if (oldest == maps_.end() || at->second.used < oldest->second.used) oldest = at;
      }
      if (oldest == maps_.end() || calls_ - oldest->second.used < kMinIdleCalls) return false;
      held -= oldest->second.bytes;
      maps_.erase(oldest);
    }
    return true;
  }

  std::mutex mutex_;  // guards all members
  int64_t calls_ = 0;
  std::map<ExpattMapKey, Entry> maps_;
  std::set<ExpattMapKey> seen_;  // keys that were asked for once
};

}  // namespace saccade::kernels
