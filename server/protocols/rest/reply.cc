#include "server/protocols/rest/reply.h"

#include <utility>

#include "absl/time/time.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

constexpr absl::Duration kRetryAfter = absl::Seconds(1);

struct Pending {
  MakeResponse make;
  HttpReply reply;
};

HttpResponse Make(MakeResponse make, const absl::Status& room) {
  try {
    return std::move(make)(room);
  } catch (const std::exception& exception) {
    Log(LogLevel::kError, "a response could not be made", {{"what", exception.what()}});
    // The text of an exception is about the daemon's inside, so clients do not get it.
    return HttpError(500, "internal error");
  }
}

void Send(Pending& pending, const absl::Status& room = absl::OkStatus()) {
  // Whatever `make` holds is destroyed before the response is sent.
  HttpResponse response = Make(std::move(pending.make), room);
  pending.reply(std::move(response));
}

}  // namespace

void ReplyWith(WorkPool* pool, absl::string_view client, int64_t bytes, MakeResponse make, HttpReply reply) {
  if (pool == nullptr || bytes <= kMaxTextHere) {
    Pending pending{std::move(make), std::move(reply)};
    return Send(pending);
  }
  // Shared, because a pool that is full destroys its task.
  const auto pending = std::make_shared<Pending>(Pending{std::move(make), std::move(reply)});
  if (pool->Submit(client, [pending] { Send(*pending); })) return;
  if (bytes <= kMaxTextWithoutPool) return Send(*pending);
  absl::Status busy =
      absl::ResourceExhaustedError("too many large answers wait to be written as text; try again later");
  SetShedReason(busy, ShedReason::kQueueFull);
  SetRetryAfter(busy, kRetryAfter);
  Send(*pending, busy);
}

}  // namespace saccade::server
