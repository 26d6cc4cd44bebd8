// The response to an inference over HTTP: JSON, followed by the tensors that are wanted as binary data.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/tensor_call.h"
#include "server/http/http_message.h"
#include "server/protocols/rest/request.h"

namespace saccade::server {

// Binary tensors are referred to, not copied; of tensors in shared memory only type and shape are sent.
// RESOURCE_EXHAUSTED, with advice for a smaller answer, if the answer has more than `max_bytes`;
// INVALID_ARGUMENT for tensors that JSON cannot express: FP16, BF16, BYTES that are not UTF-8.
absl::StatusOr<HttpResponse> ToRestAnswer(TensorAnswer answer, absl::string_view id, const RestForm& form,
                                          int64_t max_bytes);

}  // namespace saccade::server
