// Parses the JSON of an inference request without building a tree, which would take twenty times the memory
// of the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/byte_ledger.h"
#include "server/core/byte_pieces.h"
#include "server/core/cancellation.h"
#include "server/core/tensor.h"
#include "server/protocols/rest/value.h"

namespace saccade::server {

// What the JSON says about an input or output. The caller checks that required members are present.
struct RestTensor {
  std::optional<std::string> name;
  std::optional<DataType> type;
  std::optional<std::vector<int64_t>> shape;
  RestParameters parameters;
  // For an input, the elements of "data" in the tensor's layout.
  std::optional<BytePieces> data;
};

struct RestJson {
  std::string id;
  RestParameters parameters;
  std::vector<RestTensor> inputs;
  std::vector<RestTensor> outputs;
  // For the memory of all this; has to be kept as long.
  std::vector<ByteCharge> charges;
};

// JSON that came compressed may have so many values and names, or kMaxCompressedRestValuesPerByte for each
// byte that was sent. A value takes about 60 ns. So the bytes of a short request take as long to parse as to
// decompress (16 MiB from 16 kB, in 0.1 s), and those of a long one a microsecond each.
inline constexpr size_t kMaxCompressedRestValues = 8192;
inline constexpr size_t kMaxCompressedRestValuesPerByte = 16;

// What parsing a request may use.
struct RestLimits {
  // Maximum size of the elements of all inputs together.
  size_t max_bytes = 0;
  // Where memory is charged to `client` before it is allocated. Null: nothing is charged.
  ByteLedger* ledger = nullptr;
  absl::string_view client = {};
  // Parsing ends soon after it is raised. May be null.
  const Cancellation* cancellation = nullptr;
  // Size of the body as it was sent, if it came compressed.
  std::optional<size_t> compressed_bytes = std::nullopt;
};

// INVALID_ARGUMENT says where the error is and what was expected; CANCELLED if `limits.cancellation` is
// raised; else the errors of the ledger. Unknown members are ignored, unless they have more than
// kMaxJsonValues values. Values and names that are read twice, because data precede their type or shape,
// count twice to the bound of compressed JSON.
absl::StatusOr<RestJson> ParseRestJson(absl::string_view text, const RestLimits& limits);

}  // namespace saccade::server
