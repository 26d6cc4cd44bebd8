// The elements of a tensor that came as numbers of the message instead of as raw bytes.
#pragma once

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "server/core/byte_pieces.h"
#include "server/core/tensor.h"

namespace saccade::server {

// As a tensor of `type` has them in memory; what lies in the message as it does there is not copied, so the
// message must outlive the result. INVALID_ARGUMENT if elements stand in a field of another type, a number is
// beyond `type`, or `type` cannot be sent like this (FP16 and BF16).
absl::StatusOr<BytePieces> BytesOf(const inference::InferTensorContents& contents, DataType type);

}  // namespace saccade::server
