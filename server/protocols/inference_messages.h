// The only place that turns messages of GRPCInferenceService into the server's own words, and back.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/core/tensor_call.h"
#include "server/inference/inference.h"
#include "server/protocols/inference_answer.h"
#include "server/protocols/inference_request.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// The result points into `received`, which must outlive it; inputs that lie in shared memory are copied from
// there. Cancellation and client are the caller's to set. INVALID_ARGUMENT names the tensor or field;
// UNIMPLEMENTED a parameter that would change the answer and is not served; SharedMemory::Read's errors.
absl::StatusOr<TensorCall> FromMessage(const InferenceRequest& received, const SharedMemory& shared_memory,
                                       absl::Time arrival, absl::Time deadline);

InferenceAnswer ToAnswer(TensorAnswer answer, absl::string_view id);

// RESOURCE_EXHAUSTED, with what to ask for instead, if the answer takes more than `most` bytes.
absl::Status CheckSize(const InferenceAnswer& answer, int64_t most);

void ToMessage(const ModelInterface& model, inference::ModelMetadataResponse* message);

// The empty string is 0, the latest.
absl::StatusOr<int64_t> ParseVersion(absl::string_view version);

}  // namespace saccade::server
