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
#include "server/core/byte_pieces.h"
#include "server/core/tensor.h"
#include "server/protocols/rest_value.h"

namespace saccade::server {

// What the JSON says about an input or output. The caller checks that required members are present.
struct RestTensor {
  std::optional<std::string> name;
  std::optional<DataType> type;
  std::optional<std::vector<int64_t>> shape;
  RestParameters parameters;
  // Of an input: the elements of "data" in the tensor's layout.
  std::optional<BytePieces> data;
};

struct RestJson {
  std::string id;
  RestParameters parameters;
  std::vector<RestTensor> inputs;
  std::vector<RestTensor> outputs;
};

// INVALID_ARGUMENT says where the error is and what was expected. Unknown members are ignored. `max_bytes`
// is the maximum size of the elements of all inputs together.
absl::StatusOr<RestJson> ParseRestJson(absl::string_view text, size_t max_bytes);

}  // namespace saccade::server
