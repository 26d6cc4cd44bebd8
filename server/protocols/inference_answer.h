// A ModelInferResponse whose tensors' bytes are sent from where the results have them.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "inference/grpc_service.pb.h"
#include "server/core/request.h"
#include "server/protocols/inference_tensors.h"

namespace saccade::server {

struct InferenceAnswer {
  // What the tensors may point into.
  std::shared_ptr<const Response> response = nullptr;
  // All but raw_output_contents, which are the tensors' bytes, one an output.
  inference::ModelInferResponse fields = {};
  std::vector<OutputTensor> tensors = {};
};

// As it is sent.
size_t SizeOf(const InferenceAnswer& answer);

// The message, serialised. What is small is copied together, the rest is referred to, and kept until it is
// sent.
grpc::ByteBuffer ToBytes(InferenceAnswer answer);

}  // namespace saccade::server
