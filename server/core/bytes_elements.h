// The elements of a BYTES tensor: each is a 4-byte little-endian length, and as many bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// Where they lie; `owner` keeps those that had to be put together, the others live as long as the pieces.
struct BytesElements {
  std::shared_ptr<const void> owner;
  std::vector<std::string_view> elements;
};

// INVALID_ARGUMENT unless the bytes are exactly `expected` elements. An element that lies in one piece is not
// copied.
absl::StatusOr<BytesElements> SplitBytes(const BytePieces& bytes, int64_t expected);

// The other way: refers to the elements, which must outlive the result.
BytePieces JoinBytes(absl::Span<const std::string_view> elements);

}  // namespace saccade::server
