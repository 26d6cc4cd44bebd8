// What models of each task give in the Open Inference Protocol: docs/api.md has the table.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "models/description.h"
#include "server/core/request.h"
#include "server/protocols/inference_answer.h"

namespace saccade::server {

// INVALID_ARGUMENT, with those that there are, if the request names an output that the model lacks;
// UNIMPLEMENTED for a parameter of an output that would change the answer and is not served.
absl::Status CheckOutputs(const inference::ModelInferRequest& request, const models::Description& model);

// Adds the outputs that the request names, or those that come unasked. INVALID_ARGUMENT if pictures of
// several sizes would have to share a tensor. REQUIRES: CheckOutputs took the request, and `response`
// outlives the answer.
absl::Status AddOutputs(const Response& response, const inference::ModelInferRequest& request,
                        InferenceAnswer* answer);

void DescribeOutputs(const models::Description& model, inference::ModelMetadataResponse* message);

// RESOURCE_EXHAUSTED, with what to ask for instead, if the answer takes more than `most` bytes.
absl::Status CheckSize(const InferenceAnswer& answer, int64_t most);

}  // namespace saccade::server
