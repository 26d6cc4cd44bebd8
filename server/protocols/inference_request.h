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

// Stays where it is made: `raws` point into `slices`.
struct InferenceRequest {
  InferenceRequest() = default;
  InferenceRequest(const InferenceRequest&) = delete;
  InferenceRequest& operator=(const InferenceRequest&) = delete;

  // More inputs than any model has: of what comes beyond, only the number is kept.
  static constexpr int64_t kMostRaws = 1024;

  // All but raw_input_contents.
  inference::ModelInferRequest fields;
  // Of raw_input_contents, of which there are `raw_count`, the first.
  std::vector<BytePieces> raws;
  int64_t raw_count = 0;
  std::vector<grpc::Slice> slices;
};

// INVALID_ARGUMENT if the bytes are no such message. REQUIRES: `request` is as it was made.
absl::Status ReadInferenceRequest(const grpc::ByteBuffer& bytes, InferenceRequest& request);

}  // namespace saccade::server
