// An inference request's JSON, read without building a tree of it: a tree takes twenty times as much as the
// text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/byte_pieces.h"
#include "server/core/tensor.h"
#include "server/protocols/rest_value.h"

namespace saccade::server {

// What an input or an output says of itself; which of it has to be there, the reader of the request knows.
struct RestTensor {
  std::optional<std::string> name;
  std::optional<DataType> type;
  std::optional<std::vector<int64_t>> shape;
  RestParameters parameters;
  // Of an input's "data", as a tensor has them.
  std::optional<BytePieces> data;
};

struct RestJson {
  std::string id;
  RestParameters parameters;
  std::vector<RestTensor> inputs;
  std::vector<RestTensor> outputs;
};

// INVALID_ARGUMENT says where, and what was expected. Members that the protocol does not have are passed
// over. `most_bytes` bounds the elements of all inputs together.
absl::StatusOr<RestJson> ParseRestJson(absl::string_view text, size_t most_bytes);

}  // namespace saccade::server
