// An inference request over HTTP: JSON, followed by the tensors that are sent as binary data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/core/tensor_call.h"
#include "server/http/http_headers.h"
#include "server/protocols/rest/json.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// How many of the body's bytes are JSON; all if the header is missing.
inline constexpr char kJsonLengthHeader[] = "Inference-Header-Content-Length";

// How the client wants the output tensors: as binary data after the JSON, or in the JSON.
struct RestForm {
  bool binary_by_default = false;
  // Outputs for which the request says so explicitly.
  std::map<std::string, bool> binary;

  bool BinaryOf(const std::string& output) const;
};

struct RestCall {
  // For the memory of the elements in JSON; have to be kept as long as the call. Declared before it, so that
  // it is freed first.
  std::vector<ByteCharge> charges;
  TensorCall call;
  RestForm form;
};

struct RestBody {
  absl::string_view bytes;
  // Keeps `bytes` alive.
  std::shared_ptr<const void> owner;
  // The value of kJsonLengthHeader; nullopt if it was not sent.
  std::optional<absl::string_view> json_length;
};

// INVALID_ARGUMENT names the tensor or parameter, UNIMPLEMENTED what is not supported; other errors are those
// of SharedInputs::Read. The caller sets model, version and cancellation, and what CallScope::Describe()
// sets. Tensors in binary data are not copied. Elements in JSON and tensors in shared memory are copied, and
// charged to `limits.ledger`. All three are the call's charged_bytes: the front has charged the body.
absl::StatusOr<RestCall> ReadRestRequest(const RestBody& body, const SharedMemory& shared_memory,
                                         const RestLimits& limits);

// HttpRoute::bytes_to_parse of the routes whose bodies are read here: the length of the JSON. The whole body
// if kJsonLengthHeader is missing or cannot be right, or if the JSON may name the type BYTES, whose elements
// are split.
size_t RestBytesToParse(const HttpHeaders& headers, absl::string_view body);

// The same where shared memory is allowed: SIZE_MAX if the JSON may name some, because a small body may name
// large tensors.
size_t RestBytesToRead(const HttpHeaders& headers, absl::string_view body);

// True if the body consists of one tensor's bytes, without JSON.
absl::StatusOr<bool> IsRawBody(const RestBody& body);

// Reads such a body for a model with `inputs`, which must be a single one. For BYTES the body is one element;
// for other types the size of the body determines the one free extent. If `batched`, the first extent is the
// batch, which is one if another extent is free too. All outputs are wanted as binary data.
absl::StatusOr<RestCall> ReadRawRequest(const RestBody& body, absl::Span<const TensorDescription> inputs,
                                        bool batched);

}  // namespace saccade::server
