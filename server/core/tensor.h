// Named and typed tensors as clients send and receive them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/api/data_type.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// NameOf(type) and SizeOf(type) come with it.
using models::DataType;
inline std::optional<DataType> DataTypeOf(absl::string_view name) {
  return models::DataTypeOf({name.data(), name.size()});
}

// More extents than any tensor has. A request may name no more.
inline constexpr size_t kMaxTensorExtents = 32;

// A range of bytes in a shared memory region that the client registered.
struct SharedRange {
  std::string region;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct Tensor {
  std::string name;
  DataType type = DataType::kFp32;
  std::vector<int64_t> shape;
  // Row-major, little-endian. A request's bytes are kept alive by their owner, or by the sender until the
  // call is answered; an answer's bytes by their owner.
  BytePieces data;
  // Answers only: the range to which the bytes were written. `data` is then empty.
  std::optional<SharedRange> shared = std::nullopt;
};

// A tensor that a model takes or returns.
struct TensorDescription {
  std::string name;
  DataType type = DataType::kFp32;
  // Includes the batch dimension, if any; -1 where the request decides.
  std::vector<int64_t> shape;
  // True for an input that a request may omit.
  bool optional = false;
};

// Number of elements. INVALID_ARGUMENT if a dimension is negative or the product exceeds 2^40.
absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> shape);

// INVALID_ARGUMENT unless the number of bytes matches shape and type. Does not check the length of BYTES
// tensors: SplitBytes does.
absl::Status CheckBytes(const Tensor& tensor);

// Formats a shape like "[2,3,-1]".
std::string ShapeText(absl::Span<const int64_t> shape);

}  // namespace saccade::server
