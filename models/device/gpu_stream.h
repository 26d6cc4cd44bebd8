// A GPU stream for one model: passes on one stream run in order, those of different streams overlap.
#pragma once

#include <c10/core/Stream.h>

namespace saccade::models {

class GpuStream {
 public:
  // Takes a stream from LibTorch's pool. Throws LoadError if the GPU does not exist or CUDA is not available.
  explicit GpuStream(int gpu);
  // Waits for the work enqueued on the stream.
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  c10::Stream stream() const { return stream_; }

 private:
  c10::Stream stream_;
};

}  // namespace saccade::models
