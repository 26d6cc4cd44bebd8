// An inference request over HTTP: JSON, and behind it the tensors that are sent as binary data.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/core/tensor_call.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Says how many of the body's bytes are JSON; all of them without it.
inline constexpr char kJsonLengthHeader[] = "Inference-Header-Content-Length";

// How the client wants its answer's tensors: as binary data behind the JSON, or in it.
struct RestForm {
  bool binary_by_default = false;
  // Of outputs that were named with a wish of their own.
  std::map<std::string, bool> binary;

  bool BinaryOf(const std::string& output) const;
};

struct RestCall {
  TensorCall call;
  RestForm form;
};

struct RestBody {
  absl::string_view bytes;
  // Keeps them alive.
  std::shared_ptr<const void> owner;
  // The header's value, if it was sent.
  std::optional<absl::string_view> json_length;
};

// INVALID_ARGUMENT names the tensor or parameter, UNIMPLEMENTED what is not served; SharedInputs::Read's
// errors. Model, version, client and cancellation are the caller's to set. Tensors that came as binary data
// are not copied, those in shared memory are. `most_bytes` bounds what the elements may take that came as
// JSON.
absl::StatusOr<RestCall> ReadRestRequest(const RestBody& body, const SharedMemory& shared_memory,
                                         size_t most_bytes);

// Whether the body is one tensor's bytes alone, without any JSON.
absl::StatusOr<bool> IsRawBody(const RestBody& body);

// Such a body for a model that takes `inputs`, which has to be one: of BYTES it is one element, of other
// types as many rows as there are bytes for. All outputs are wanted as binary data.
absl::StatusOr<RestCall> ReadRawRequest(const RestBody& body, absl::Span<const TensorDescription> inputs);

}  // namespace saccade::server
