// Signed statements in answers that name tensors.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "server/core/tensor_call.h"
#include "server/protocols/call_scope.h"

namespace saccade::server {

// What a statement says of a request. The inputs' bytes must stay valid until the call is answered.
struct AskedTensors {
  std::vector<Tensor> inputs = {};
  std::vector<WantedOutput> outputs = {};
};

// A copy without the tensors' bytes, which it refers to; empty if the daemon signs no answers.
AskedTensors AskedOf(const CallScope& scope, const TensorCall& call);

// Signs the answer if its model asks for that and all of its outputs are part of it, and not in shared
// memory; else does nothing. INTERNAL if memory is short: the answer must then not be sent.
absl::Status Attest(const CallScope& scope, const AskedTensors& asked, TensorAnswer* answer);

}  // namespace saccade::server
