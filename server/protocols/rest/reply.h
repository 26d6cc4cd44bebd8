// Sends responses that are made from results.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"
#include "server/net/work_pool.h"

namespace saccade::server {

// Results that are larger than this are converted to text on the work pool.
inline constexpr int64_t kMaxTextHere = 16 << 10;

// If the pool has too many tasks, texts up to this size are still made.
inline constexpr int64_t kMaxTextWithoutPool = 256 << 10;

// Makes a response that contains a text. `room` is RESOURCE_EXHAUSTED if too many texts wait to be written,
// and the response has to be that error.
using MakeResponse = absl::AnyInvocable<HttpResponse(const absl::Status& room) &&>;

// Sends the response that `make` returns, exactly once. `make` converts `bytes` bytes to text. If they are
// more than kMaxTextHere, it runs on `pool`, because this thread may be one that computes forward passes or
// serves other connections. It runs here if `pool` is null or has too many tasks; in the latter case there is
// no room for more than kMaxTextWithoutPool. An exception becomes a 500. `client` as in Caller.
void ReplyWith(WorkPool* pool, absl::string_view client, int64_t bytes, MakeResponse make, HttpReply reply);

}  // namespace saccade::server
