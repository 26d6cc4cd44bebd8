// A request that names tensors, and its answer: the common form of all transports of the Open Inference
// Protocol.
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
#include "server/core/attestation.h"
#include "server/core/call_head.h"
#include "server/core/tensor.h"
#include "server/core/timings.h"

namespace saccade::server {

class AnswerCharge;

struct WantedOutput {
  std::string name;
  // If positive, return the `classes` largest values of each row as text with labels; 0 returns the tensor
  // itself.
  int64_t classes = 0;
  // If set, the bytes are written to this range instead of into the answer.
  std::optional<SharedRange> shared = std::nullopt;
};

struct TensorCall : CallHead {
  // Checked: the number of bytes matches shape and type, and BYTES tensors split into that many elements.
  std::vector<Tensor> inputs;
  // If empty, all outputs that the model returns by default.
  std::vector<WantedOutput> outputs;
};

struct TensorAnswer {
  std::string model;
  int64_t version = 0;
  // In the model's order.
  std::vector<Tensor> outputs;
  // Like Response::charge.
  std::shared_ptr<const AnswerCharge> charge = nullptr;
  // Zero if nothing was computed.
  Timings timings = {};
  // Unset unless the model signs its answers.
  std::optional<Attestation> attestation = std::nullopt;
};

// Called exactly once, on the thread that ends the call; must not block.
using TensorDone = absl::AnyInvocable<void(absl::StatusOr<TensorAnswer>) &&>;

}  // namespace saccade::server
