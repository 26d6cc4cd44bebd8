#include "server/protocols/rest/reply.h"

#include <string>
#include <string_view>
#include <utility>

#include "server/core/byte_pieces.h"
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

void ReplyWith(WorkPool* pool, int64_t bytes, absl::AnyInvocable<HttpResponse() &&> make, HttpReply reply) {
  if (pool == nullptr || bytes <= kMaxTextHere) {
    Pending pending{std::move(make), std::move(reply)};
    return Send(pending);
  }
  // Shared, because a pool that is full destroys its task.
  const auto pending = std::make_shared<Pending>(Pending{std::move(make), std::move(reply)});
  if (!pool->Submit([pending] { Send(*pending); })) Send(*pending);
}

void KeepUntilSent(std::shared_ptr<const void> kept, HttpResponse& response) {
  if (kept == nullptr) return;
  if (response.attached.empty()) {
    const auto body = std::make_shared<std::pair<std::string, std::shared_ptr<const void>>>(
        std::move(response.body), std::move(kept));
    response.body.clear();
    response.attached.emplace_back(std::string_view(body->first), body);
    return;
  }
  for (BytePieces& piece : response.attached) {
    piece = piece.KeptBy(std::make_shared<std::pair<BytePieces, std::shared_ptr<const void>>>(piece, kept));
  }
}

}  // namespace saccade::server
