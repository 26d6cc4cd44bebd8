// A ModelInferResponse that refers to the results' bytes instead of copying them.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "inference/grpc_service.pb.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

class AnswerCharge;

struct InferenceAnswer {
  // All fields except raw_output_contents.
  inference::ModelInferResponse fields = {};
  // raw_output_contents, one entry per output.
  std::vector<BytePieces> raws = {};
  // See Response::charge.
  std::shared_ptr<const AnswerCharge> charge = nullptr;
  // Keeps alive what `raws` may refer to in addition to their own owners.
  std::shared_ptr<const void> source = nullptr;
};

// Size of the serialised message.
size_t SizeOf(const InferenceAnswer& answer);

// Serialises the message. Small parts are copied together; large ones are referred to, and kept alive until
// they are sent.
grpc::ByteBuffer ToBytes(InferenceAnswer answer);

// The same, wrapped in a ModelStreamInferResponse.
grpc::ByteBuffer ToStreamBytes(InferenceAnswer answer);

}  // namespace saccade::server
