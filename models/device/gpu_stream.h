// A GPU stream for one model: passes on one stream run in order, those of different streams overlap.
#pragma once

#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include "models/device/stream_lock.h"

namespace saccade::models {

class GpuStream {
 public:
  // Takes a stream from LibTorch's pool, which models share only if there are more of them than streams.
  // Throws LoadError if the GPU does not exist or CUDA is not available.
  explicit GpuStream(int gpu);
  // Calls Wait().
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  // Waits for the work enqueued on the stream. Only warns if CUDA fails.
  void Wait() const;

  c10::Stream stream() const { return locked_.stream; }
  StreamLock& lock() const { return *locked_.lock; }

 private:
  const LockedStream locked_;
};

// While it lives, the calling thread computes on the stream. Blocks while another pass is recorded on it.
class OnStream {
 public:
  explicit OnStream(const GpuStream& stream) : pass_(stream.lock()), guard_(stream.stream()) {}

 private:
  const StreamPass pass_;
  const c10::StreamGuard guard_;
};

}  // namespace saccade::models
