// An inference's answer over HTTP: JSON, and behind it the tensors that are wanted as binary data.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/tensor_call.h"
#include "server/http/http_message.h"
#include "server/protocols/rest_request.h"

namespace saccade::server {

// Binary tensors are referred to, not copied; of those in shared memory there are type and shape alone.
// RESOURCE_EXHAUSTED, with what to ask for instead, if the answer takes more than `most_bytes`;
// INVALID_ARGUMENT if JSON cannot express a tensor: FP16, BF16, what is not a number, BYTES that are not
// UTF-8.
absl::StatusOr<HttpResponse> ToRestAnswer(TensorAnswer answer, absl::string_view id, const RestForm& form,
                                          int64_t most_bytes);

}  // namespace saccade::server
