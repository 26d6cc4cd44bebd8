// A ModelInferRequest as received, whose tensors' bytes stay in gRPC's memory.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// Neither copyable nor movable, because `raws` refer to `slices`.
struct InferenceRequest {
  InferenceRequest() = default;
  InferenceRequest(const InferenceRequest&) = delete;
  InferenceRequest& operator=(const InferenceRequest&) = delete;

  // More inputs than any model has. Further ones are only counted.
  static constexpr int64_t kMaxRaws = 1024;

  // All fields except raw_input_contents.
  inference::ModelInferRequest fields;
  // The first kMaxRaws entries of raw_input_contents, and the number of all entries.
  std::vector<BytePieces> raws;
  int64_t raw_count = 0;
  std::vector<grpc::Slice> slices;
};

// INVALID_ARGUMENT if `bytes` are not a ModelInferRequest. REQUIRES: `request` is newly constructed.
absl::Status ReadInferenceRequest(const grpc::ByteBuffer& bytes, InferenceRequest& request);

}  // namespace saccade::server
