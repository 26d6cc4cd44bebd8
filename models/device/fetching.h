// Copies a result from a GPU without waiting for it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

namespace saccade::models {

// A copy to the CPU that has been enqueued. Several can be enqueued before the first wait.
class Fetching {
 public:
  // Enqueues the copy of `x` on the calling thread's stream: later work there may overwrite `x`. Without
  // page-locked memory for the copy, blocks until it is complete. A tensor on the CPU is not copied.
  explicit Fetching(const at::Tensor& x);
  // `stream` is the one that computes `x`; nullopt if `x` is on the CPU. Tests pass a stream for such an `x`.
  Fetching(const at::Tensor& x, const std::optional<c10::Stream>& stream);

  // Blocks until the copy is complete; work enqueued after it is not waited for. The result has the type of
  // `x`, and its layout if that is dense.
  at::Tensor Wait() const;

 private:
  at::Tensor copy_;
  std::optional<c10::Event> copied_;  // nullopt if the copy is complete
};

}  // namespace saccade::models
