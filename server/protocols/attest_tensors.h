// Signed statements in answers that name tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/tensor_call.h"
#include "server/net/work_pool.h"
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

// Tensors are digested on the pool if they have more bytes together: that takes up to about 3 us a KiB.
inline constexpr int64_t kMaxDigestedHere = 16 << 10;

// Attests `answer`, unless that is an error, and calls `then` with it, or with the error. Runs on `pool` if
// there is much to digest, because this thread may be one that serves other connections or computes forward
// passes: RESOURCE_EXHAUSTED if too many tasks wait for it. If `pool` is null, all of it runs here.
void AttestOn(WorkPool* pool, const CallScope& scope, std::shared_ptr<const AskedTensors> asked,
              absl::StatusOr<TensorAnswer> answer, TensorDone then);

}  // namespace saccade::server
