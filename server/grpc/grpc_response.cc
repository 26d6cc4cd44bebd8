#include "server/grpc/grpc_response.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "server/grpc/message_encoding.h"
#include "server/grpc/message_prefix.h"
#include "server/grpc/metadata.h"
#include "server/http/head_memory.h"

namespace saccade::server {
namespace {

// A message with its prefix, in one piece of memory.
struct FramedMessage {
  std::array<char, kMessagePrefixBytes> prefix;
  BytePieces message;
};

BytePieces Frame(BytePieces message) {
  auto framed = std::make_shared<FramedMessage>();
  framed->prefix = MessagePrefix(0, message.size());
  framed->message = std::move(message);
  BytePieces pieces({framed->prefix.data(), framed->prefix.size()}, framed);
  for (const std::string_view piece : framed->message.pieces()) pieces.Add(piece);
  return pieces;
}

BytePieces Owned(std::string bytes) {
  auto owned = std::make_shared<std::string>(std::move(bytes));
  return BytePieces(*owned, owned);
}

const char* ContentType(GrpcForm form) {
  switch (form) {
    case GrpcForm::kGrpc:
      return "application/grpc";
    case GrpcForm::kWeb:
      return "application/grpc-web+proto";
    case GrpcForm::kWebText:
      return "application/grpc-web-text+proto";
  }
  return "application/grpc";
}

// The message with its prefix as base64.
absl::StatusOr<BytePieces> TextOf(const BytePieces& message, const MessageAccount& account) {
  struct Text {
    ByteCharge charge;
    std::string text;
  };
  const BytePieces framed = Frame(message);
  auto text = std::make_shared<Text>();
  // The bytes in one piece, then their text.
  if (const size_t taken = framed.size() + (framed.size() + 2) / 3 * 4; taken > kUnchargedAnswerBytes) {
    auto charge = account.Charge(taken);
    if (!charge.ok()) return charge.status();
    text->charge = *std::move(charge);
  }
  std::string bytes(framed.size(), '\0');
  framed.CopyTo(bytes.data());
  absl::Base64Escape(bytes, &text->text);
  return BytePieces(text->text, text);
}

}  // namespace

HttpHeaders GrpcResponse::Head() const {
  return {{"content-type", ContentType(form_)}, {"grpc-accept-encoding", kAcceptedEncodings}};
}

absl::Status GrpcResponse::SendMessage(Exchange* exchange, BytePieces message,
                                       const MessageAccount& account) {
  BytePieces body;
  if (form_ == GrpcForm::kWebText) {
    auto text = TextOf(message, account);
    if (!text.ok()) return text.status();
    body = *std::move(text);
  } else {
    body = Frame(std::move(message));
  }
  if (!std::exchange(head_sent_, true)) exchange->SendHead(200, Head());
  exchange->SendBody(std::move(body));
  return absl::OkStatus();
}

void GrpcResponse::SendEnd(Exchange* exchange, const CallEnd& end, int http_status) {
  HttpHeaders fields = EndFields(end);
  if (form_ == GrpcForm::kGrpc) {
    if (std::exchange(head_sent_, true)) return exchange->End(std::move(fields));
    HttpHeaders head = Head();
    for (auto& field : fields) head.push_back(std::move(field));
    exchange->SendHead(http_status, std::move(head));
    return exchange->End({});
  }
  if (!std::exchange(head_sent_, true)) exchange->SendHead(http_status, Head());
  std::string trailers = TrailersMessage(fields);
  exchange->SendBody(Owned(form_ == GrpcForm::kWebText ? absl::Base64Escape(trailers) : std::move(trailers)));
  exchange->End({});
}

}  // namespace saccade::server
