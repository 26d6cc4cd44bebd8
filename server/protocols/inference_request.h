// A ModelInferRequest as it came over the wire, its tensors' bytes left where gRPC put them.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// Stays where it is made: `raw` points into `slices`.
struct InferenceRequest {
  InferenceRequest() = default;
  InferenceRequest(const InferenceRequest&) = delete;
  InferenceRequest& operator=(const InferenceRequest&) = delete;

  // All but raw_input_contents.
  inference::ModelInferRequest fields;
  // The first of raw_input_contents, of which there are `raw_count`. No model takes more than one.
  BytePieces raw;
  int64_t raw_count = 0;
  std::vector<grpc::Slice> slices;
};

// INVALID_ARGUMENT if the bytes are no such message. REQUIRES: `request` is as it was made.
absl::Status ReadInferenceRequest(const grpc::ByteBuffer& bytes, InferenceRequest& request);

}  // namespace saccade::server
