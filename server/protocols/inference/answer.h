// A ModelInferResponse that refers to the results' bytes instead of copying them.
#pragma once

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

// Serialises the message. Small parts are copied together; large ones are referred to. The result's owner
// keeps them alive, and the answer's charge.
BytePieces ToBytes(InferenceAnswer answer);

// The same, wrapped in a ModelStreamInferResponse.
BytePieces ToStreamBytes(InferenceAnswer answer);

}  // namespace saccade::server
