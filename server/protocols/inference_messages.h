// The only place that turns messages of GRPCInferenceService into the server's own words, and back.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
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

// A model's version as a request writes it; ModelTable::VersionOf.
using VersionReader =
    absl::FunctionRef<absl::StatusOr<int64_t>(absl::string_view model, absl::string_view version)>;

// The result points into `received`, which must outlive it; inputs that lie in shared memory are copied from
// there. Cancellation and client are the caller's to set. INVALID_ARGUMENT names the tensor or field;
// UNIMPLEMENTED a parameter that would change the answer and is not served; `version_of`'s errors, and those
// of SharedInputs::Read.
absl::StatusOr<TensorCall> FromMessage(const InferenceRequest& received, const SharedMemory& shared_memory,
                                       VersionReader version_of, absl::Time arrival, absl::Time deadline);

InferenceAnswer ToAnswer(TensorAnswer answer, absl::string_view id);

// RESOURCE_EXHAUSTED, with what to ask for instead, if the answer takes more than `most` bytes.
absl::Status CheckSize(const InferenceAnswer& answer, int64_t most);

void ToMessage(const ModelInterface& model, inference::ModelMetadataResponse* message);

}  // namespace saccade::server
