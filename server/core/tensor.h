// Tensors as clients send and get them: named, typed, with their bytes wherever these lie.
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
#include "server/core/byte_pieces.h"

namespace saccade::server {

enum class DataType {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kFp32,
  kFp64,
  // Elements of any length: each has 4 bytes that tell it, little-endian, before its own.
  kBytes,
  kBf16,
};

// As the Open Inference Protocol writes it: "BOOL", "FP32", "BYTES".
absl::string_view NameOf(DataType type);
std::optional<DataType> DataTypeOf(absl::string_view name);

// Of an element; 0 for BYTES.
size_t SizeOf(DataType type);

// Bytes in memory that a client shares with the daemon: of a region that it registered, so many from there.
struct SharedRange {
  std::string region;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct Tensor {
  std::string name;
  DataType type = DataType::kFp32;
  std::vector<int64_t> shape;
  // Row by row, little-endian. Of a request it is kept alive by its owner or by who sent it, until the
  // answer; of an answer by its owner.
  BytePieces data;
  // Of an answer: where its bytes were written to; then there are none in `data`.
  std::optional<SharedRange> shared = std::nullopt;
};

// What a model says of a tensor that it takes or gives.
struct TensorDescription {
  std::string name;
  DataType type = DataType::kFp32;
  // With the batch dimension, if there is one; -1 where the request decides.
  std::vector<int64_t> shape;
  // An input that a request may leave out.
  bool optional = false;
};

// How many elements the shape has, up to 2^40. INVALID_ARGUMENT if an extent is negative, or they are more.
absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> shape);

// INVALID_ARGUMENT unless the tensor has as many bytes as its shape and type say; of BYTES, SplitBytes finds
// out.
absl::Status CheckBytes(const Tensor& tensor);

// "[2,3,-1]".
std::string ShapeText(absl::Span<const int64_t> shape);

}  // namespace saccade::server
