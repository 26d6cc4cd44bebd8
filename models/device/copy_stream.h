// Copies to a GPU while it computes passes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>

namespace saccade::models {

// A stream for copies alone, so that a batch is copied while the pass of another instance's batch is
// computed. Its copies run in order. Thread-safe.
class CopyStream {
 public:
  // Takes one of LibTorch's streams of high priority. Models do not have those (GpuStream).
  explicit CopyStream(const c10::Device& gpu);

  // The stream for all copies to the GPU, made by the first call and kept.
  static const CopyStream& Of(const c10::Device& gpu);

  // Runs `copy`, which enqueues a copy to the GPU and returns the copied tensor, on the copy stream. Does not
  // wait: what the calling thread enqueues on its own stream afterwards begins when the copy is complete.
  // REQUIRES: the thread's stream is not being recorded.
  at::Tensor Run(const std::function<at::Tensor()>& copy) const;

 private:
  const c10::Stream stream_;
};

}  // namespace saccade::models
