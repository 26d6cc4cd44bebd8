// Unary methods whose request brings inputs, and may be large.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/grpc/unary.h"
#include "server/net/work_pool.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// Larger messages are parsed on the pool. Parsing takes up to about 4 ms a MiB, and the other connections of
// the network thread wait for it.
inline constexpr size_t kMaxBytesParsedHere = size_t{256} << 10;

// Calls `read`, which parses `bytes` bytes: on `pool` if they are more than kMaxBytesParsedHere, else before
// this returns. If `pool` is null, `read` is always called before this returns. RESOURCE_EXHAUSTED, without a
// call, if too many tasks wait for the pool. `client` as in CallStart.
absl::Status ReadMessageOn(WorkPool* pool, absl::string_view client, size_t bytes,
                           absl::AnyInvocable<void() &&> read);

// The bytes of a message that have to be parsed, or more if the message names bytes that have to be copied.
using BytesToParse = std::function<size_t(const BytePieces& message)>;

// As UnaryMethod(), but `function` is called by ReadMessageOn(), and charges its answers itself. A null
// `bytes_to_parse` means all bytes. `jitter` is that of ToCallEnd(); it may be null.
CallMethod InputMethod(std::string path, std::string message, WorkPool* pool, UnaryFunction function,
                       std::function<void(absl::StatusCode)> no_message, RetryJitter* jitter,
                       BytesToParse bytes_to_parse = nullptr);

}  // namespace saccade::server
