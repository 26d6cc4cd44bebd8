// Converts between messages of GRPCInferenceService and the server's types. No other file does that.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/core/byte_ledger.h"
#include "server/core/tensor_call.h"
#include "server/inference/inference.h"
#include "server/protocols/inference/answer.h"
#include "server/protocols/inference/request.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Parses a model's version from a request; see ModelTable::VersionOf.
using VersionReader =
    absl::FunctionRef<absl::StatusOr<int64_t>(absl::string_view model, absl::string_view version)>;

// The result refers to `received`, which must outlive it; inputs in shared memory are copied,
// from regions of `client`, and charged to `ledger`, unless that is null. The caller sets cancellation and
// client, and adds what it has charged for the message to charged_bytes. INVALID_ARGUMENT names the tensor or
// field; UNIMPLEMENTED names an unsupported parameter that would change the answer; other errors are those of
// `version_of` and of SharedInputs::Read.
absl::StatusOr<TensorCall> FromMessage(const InferenceRequest& received, const SharedMemory& shared_memory,
                                       VersionReader version_of, absl::Time arrival, absl::Time deadline,
                                       absl::string_view client = "", ByteLedger* ledger = nullptr);

InferenceAnswer ToAnswer(TensorAnswer answer, absl::string_view id);

// RESOURCE_EXHAUSTED, with advice for a smaller answer, if the answer has more than `max` bytes.
absl::Status CheckSize(const InferenceAnswer& answer, int64_t max);

void ToMessage(const ModelInterface& model, inference::ModelMetadataResponse* message);

}  // namespace saccade::server
