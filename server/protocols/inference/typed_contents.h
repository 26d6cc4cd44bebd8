// Tensor elements in typed fields of the message instead of raw bytes.
#pragma once

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "server/core/byte_pieces.h"
#include "server/core/tensor.h"

namespace saccade::server {

// The elements in the memory layout of `type`. Fields with that layout are referred to, so the message must
// outlive the result; others are converted. INVALID_ARGUMENT if elements are in a field of another type, a
// number is out of `type`'s range, or `type` has no typed field (FP16 and BF16).
absl::StatusOr<BytePieces> BytesOf(const inference::InferTensorContents& contents, DataType type);

}  // namespace saccade::server
