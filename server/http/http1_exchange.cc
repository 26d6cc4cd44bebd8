#include "server/http/http1_exchange.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace saccade::server {
namespace {

// Whether the client takes trailers: "TE: trailers", alone or among others.
bool AcceptsTrailers(const HttpHeaders& headers) {
  const auto list = FindHeader(headers, "te");
  if (!list) return false;
  for (const absl::string_view entry : absl::StrSplit(*list, ',')) {
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(entry), "trailers")) return true;
  }
  return false;
}

}  // namespace

Http1Exchange::Http1Exchange(Http1Connection* connection, std::unique_ptr<RequestParser> parser)
    : connection_(connection),
      parser_(std::move(parser)),
      response_({.is_head = head().method == "HEAD",
                 .is_http11 = parser_->is_http11(),
                 .accepts_trailers = AcceptsTrailers(head().headers)},
                &connection->transport().output()),
      left_(head().content_length.value_or(0)),
      expects_continue_(parser_->is_http11() && head().has_body &&
                        FindHeader(head().headers, "expect").has_value()),
      body_complete_(!head().has_body) {}

void Http1Exchange::Begin(ExchangeHandler* handler) {
  receiver_ = handler->Begin(this);
  if (body_complete_ && !over_) receiver_->OnBodyEnd();
}

void Http1Exchange::AllowBody(uint64_t total) {
  if (total <= allowed_) return;
  allowed_ = total;
  if (waits_for_permission_) connection_->OnPermission();
}

void Http1Exchange::SendContinue() {
  expects_continue_ = false;
  connection_->transport().output().Copy("HTTP/1.1 100 Continue\r\n\r\n");
  connection_->transport().Flush();
}

void Http1Exchange::SendHead(int status, HttpHeaders headers) {
  if (over_) return;
  // If the body was not received completely, its rest would be parsed as the next request.
  const bool keep_alive = parser_->keep_alive() && body_complete_ && connection_->StaysOpen();
  response_.AddHead(status, headers, keep_alive);
  connection_->transport().Flush();
}

void Http1Exchange::SendBody(BytePieces bytes) {
  // The connection may have responded itself. An action on the output would outlive this object.
  if (over_) return;
  const size_t size = response_.AddBody(std::move(bytes));
  if (size == 0) return;
  unsent_ += size;
  connection_->transport().output().OnWritten([this, size] {
    unsent_ -= size;
    if (!reset_) receiver_->OnWritten();
  });
  connection_->transport().Flush();
}

void Http1Exchange::End(HttpHeaders trailers) {
  if (over_) return;
  response_.AddEnd(trailers);
  over_ = true;
  Output& output = connection_->transport().output();
  if (output.empty()) {
    connection_->FinishLater();
  } else {
    output.OnWritten([connection = connection_] { connection->Finish(); });
  }
  if (response_.keep_alive() && body_complete_) {
    connection_->transport().Flush();
  } else {
    connection_->Close();
  }
}

void Http1Exchange::Reset(ExchangeError /*error*/) {
  over_ = true;
  reset_ = true;
  connection_->Abort();
}

size_t Http1Exchange::Deliver(absl::string_view bytes) {
  expects_continue_ = false;
  size_t done = 0;
  while (done < bytes.size() && delivered_ < allowed_ && !over_) {
    const absl::string_view piece = bytes.substr(done, allowed_ - delivered_);
    delivered_ += piece.size();
    done += piece.size();
    receiver_->OnBody(piece);
  }
  waits_for_permission_ = done < bytes.size();
  return done;
}

void Http1Exchange::CompleteBody() {
  body_complete_ = true;
  waits_for_permission_ = false;
  if (!over_) receiver_->OnBodyEnd();
}

Http1Exchange::Taken Http1Exchange::TakeBody(absl::string_view bytes) {
  Taken taken;
  if (!parser_->chunked()) {
    taken.bytes = Deliver(bytes.substr(0, left_));
    left_ -= taken.bytes;
    if (left_ == 0) CompleteBody();
    return taken;
  }
  waits_for_permission_ = false;
  taken.malformed =
      parser_->ReadChunks(bytes, [this](absl::string_view piece) { return Deliver(piece); }, &taken.bytes);
  if (!taken.malformed && parser_->body_done()) CompleteBody();
  return taken;
}

}  // namespace saccade::server
