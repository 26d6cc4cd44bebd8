// Splits and joins the elements of a BYTES tensor. Each element is a 4-byte little-endian length, followed by
// that many bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// The elements of a BYTES tensor. `owner` holds the elements that had to be copied; the others point into the
// pieces and live as long as they do.
struct BytesElements {
  std::shared_ptr<const void> owner;
  std::vector<std::string_view> elements;
};

// Splits `bytes` into its elements. INVALID_ARGUMENT unless they are exactly `expected` elements. Only an
// element that spans several pieces is copied.
absl::StatusOr<BytesElements> SplitBytes(const BytePieces& bytes, int64_t expected);

// Appends an element to the bytes of a tensor.
void AppendElement(std::string_view element, std::string& bytes);

// The inverse of SplitBytes. The result points to the elements, which must outlive it.
BytePieces JoinBytes(absl::Span<const std::string_view> elements);

}  // namespace saccade::server
