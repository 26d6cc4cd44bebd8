// A stream of a GPU for one model: its passes follow each other, those of several models overlap.
#pragma once

#include <c10/core/Stream.h>

namespace saccade::models {

class GpuStream {
 public:
  // Throws LoadError if there is no such GPU.
  explicit GpuStream(int gpu);
  // Waits for what was begun on it.
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  c10::Stream stream() const { return stream_; }

 private:
  c10::Stream stream_;
};

}  // namespace saccade::models
