#include "server/protocols/input_method.h"

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"
#include "server/protocols/grpc_status.h"

namespace saccade::server {
namespace {

// The pool needs less for most of its tasks.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);

struct InputParts {
  WorkPool* pool;
  UnaryFunction function;
  std::function<void(absl::StatusCode)> no_message;
  RetryJitter* jitter;
  BytesToParse bytes_to_parse;
};

void End(const InputParts& parts, UnaryCall& call, const absl::Status& why) {
  if (parts.no_message != nullptr) parts.no_message(why.code());
  call.Fail(ToCallEnd(why, parts.jitter));
}

}  // namespace

absl::Status ReadMessageOn(WorkPool* pool, absl::string_view client, size_t bytes,
                           absl::AnyInvocable<void() &&> read) {
  if (pool == nullptr || bytes <= kMaxBytesParsedHere) {
    std::move(read)();
    return absl::OkStatus();
  }
  if (pool->Submit(client, std::move(read))) return absl::OkStatus();
  absl::Status busy = absl::ResourceExhaustedError(
      "too many large messages wait to be read, of all clients or of this one; try again later");
  SetShedReason(busy, ShedReason::kQueueFull);
  SetRetryAfter(busy, kRetryAfter);
  return busy;
}

CallMethod InputMethod(std::string path, std::string message, WorkPool* pool, UnaryFunction function,
                       std::function<void(absl::StatusCode)> no_message, RetryJitter* jitter,
                       BytesToParse bytes_to_parse) {
  const auto parts = std::make_shared<const InputParts>(
      InputParts{pool, std::move(function), no_message, jitter, std::move(bytes_to_parse)});
  CallMethod method = UnaryMethod(
      std::move(path), std::move(message),
      [parts](const std::shared_ptr<UnaryCall>& call, BytePieces received) {
        const size_t bytes =
            parts->bytes_to_parse == nullptr ? received.size() : parts->bytes_to_parse(received);
        auto read = [parts, call, received = std::move(received)]() mutable {
          // The client may have gone while the message waited for the pool.
          if (call->cancellation()->cancelled())
            return End(*parts, *call,
                       absl::CancelledError("the client has gone, or its deadline has passed"));
          parts->function(call, std::move(received));
        };
        const absl::Status taken = ReadMessageOn(parts->pool, call->start().client, bytes, std::move(read));
        if (!taken.ok()) End(*parts, *call, taken);
      },
      std::move(no_message));
  method.charges_answers = true;
  return method;
}

}  // namespace saccade::server
