#include "server/protocols/rest/reply.h"

#include <utility>

#include "server/logging/log.h"

namespace saccade::server {
namespace {

struct Pending {
  absl::AnyInvocable<HttpResponse() &&> make;
  HttpReply reply;
};

HttpResponse Make(absl::AnyInvocable<HttpResponse() &&> make) {
  try {
    return std::move(make)();
  } catch (const std::exception& exception) {
    Log(LogLevel::kError, "a response could not be made", {{"what", exception.what()}});
    // The text of an exception is about the daemon's inside, so clients do not get it.
    return HttpError(500, "internal error");
  }
}

void Send(Pending& pending) {
  // Whatever `make` holds is destroyed before the response is sent.
  HttpResponse response = Make(std::move(pending.make));
  pending.reply(std::move(response));
}

}  // namespace

void ReplyWith(WorkPool* pool, absl::string_view client, int64_t bytes,
               absl::AnyInvocable<HttpResponse() &&> make, HttpReply reply) {
  if (pool == nullptr || bytes <= kMaxTextHere) {
    Pending pending{std::move(make), std::move(reply)};
    return Send(pending);
  }
  // Shared, because a pool that is full destroys its task.
  const auto pending = std::make_shared<Pending>(Pending{std::move(make), std::move(reply)});
  if (pool->Submit(client, [pending] { Send(*pending); })) return;
  if (bytes <= kMaxTextWithoutPool) return Send(*pending);
  HttpResponse busy = HttpError(503, "too many large answers wait to be written as text; try again later");
  busy.headers = {{"Retry-After", "1"}};
  pending->reply(std::move(busy));
}

}  // namespace saccade::server
