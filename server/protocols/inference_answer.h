// A ModelInferResponse whose tensors' bytes are sent from where the results have them.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "inference/grpc_service.pb.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

struct InferenceAnswer {
  // All but raw_output_contents.
  inference::ModelInferResponse fields = {};
  // Which are these, one an output.
  std::vector<BytePieces> raws = {};
  // As Response has it.
  std::shared_ptr<const void> room = nullptr;
  // What they may point into beside what they own; kept as long as they.
  std::shared_ptr<const void> source = nullptr;
};

// As it is sent.
size_t SizeOf(const InferenceAnswer& answer);

// The message, serialised. What is small is copied together, the rest is referred to, and kept until it is
// sent.
grpc::ByteBuffer ToBytes(InferenceAnswer answer);

// The same, inside a ModelStreamInferResponse.
grpc::ByteBuffer ToStreamBytes(InferenceAnswer answer);

}  // namespace saccade::server
