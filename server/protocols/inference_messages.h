// The only place that turns Open Inference Protocol messages into the server's own requests, and its answers
// back: inference_inputs.h and inference_outputs.h have the tensors.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/core/request.h"
#include "server/pipeline/served_model.h"
#include "server/protocols/inference_answer.h"
#include "server/protocols/inference_request.h"

namespace saccade::server {

// The result points into `received`, which must outlive it. Cancellation is the caller's to set.
// INVALID_ARGUMENT names the tensor or field; UNIMPLEMENTED a parameter that would change the answer and is
// not served.
absl::StatusOr<Request> FromMessage(const InferenceRequest& received, absl::Time arrival,
                                    absl::Time deadline);

// As AddOutputs. REQUIRES: FromMessage took `request`, and the model accepted it.
absl::StatusOr<InferenceAnswer> ToAnswer(std::shared_ptr<const Response> response,
                                         const inference::ModelInferRequest& request);

// REQUIRES: `snapshot` is ready.
void ToMessage(const ModelSnapshot& snapshot, inference::ModelMetadataResponse* message);

// The empty string is 0, the latest.
absl::StatusOr<int64_t> ParseVersion(absl::string_view version);

}  // namespace saccade::server
