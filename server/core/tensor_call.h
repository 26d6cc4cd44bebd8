// A request that names tensors, whichever protocol brought it, and its answer. What the Open Inference
// Protocol's transports have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/core/call_head.h"
#include "server/core/tensor.h"
#include "server/core/timings.h"

namespace saccade::server {

struct WantedOutput {
  std::string name;
  // Of each row so many of the largest values, as text with their labels; 0 asks for the tensor itself.
  int64_t classes = 0;
  // Where its bytes shall be written to, in place of the answer.
  std::optional<SharedRange> shared = std::nullopt;
};

struct TensorCall : CallHead {
  // Each checked: its bytes are as many as its shape and type say, and BYTES split into that many elements.
  std::vector<Tensor> inputs;
  // None asks for all that come unasked.
  std::vector<WantedOutput> outputs;
};

struct TensorAnswer {
  std::string model;
  int64_t version = 0;
  // In the model's order.
  std::vector<Tensor> outputs;
  // As Response has it.
  std::shared_ptr<const void> room = nullptr;
  // Zero where nothing was computed.
  Timings timings = {};
};

// Called exactly once, on whichever thread ended the call; must not block.
using TensorDone = absl::AnyInvocable<void(absl::StatusOr<TensorAnswer>) &&>;

}  // namespace saccade::server
