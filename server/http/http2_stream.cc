#include "server/http/http2_stream.h"

#include <nghttp2/nghttp2.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Most requests have no more fields.
constexpr size_t kUsualFields = 8;

uint32_t CodeOf(ExchangeError error) {
  switch (error) {
    case ExchangeError::kInternal:
      return NGHTTP2_INTERNAL_ERROR;
    case ExchangeError::kRefused:
      return NGHTTP2_REFUSED_STREAM;
    case ExchangeError::kCancelled:
      return NGHTTP2_CANCEL;
    case ExchangeError::kTooSlow:
      return NGHTTP2_ENHANCE_YOUR_CALM;
  }
  return NGHTTP2_INTERNAL_ERROR;
}

}  // namespace

void Http2Stream::AllowBody(uint64_t total) {
  if (closed || request_ended_ || total <= allowed_) return;
  session_->GrantWindow(id_, total - allowed_);
  allowed_ = total;
}

void Http2Stream::SendHead(int status, HttpHeaders headers) {
  if (closed || was_reset) return;
  pending_head_ = PendingHead{status, std::move(headers)};
  session_->Changed(this);
}

void Http2Stream::SendBody(BytePieces bytes) {
  if (closed || was_reset || bytes.size() == 0) return;
  body_.Add(std::move(bytes));
  session_->Changed(this);
}

void Http2Stream::End(HttpHeaders trailers) {
  if (closed || was_reset) return;
  ended_ = true;
  trailers_ = std::move(trailers);
  session_->Changed(this);
}

void Http2Stream::Reset(ExchangeError error) {
  if (closed || was_reset) return;
  was_reset = true;
  body_.Clear();
  session_->ResetStream(id_, CodeOf(error));
}

void Http2Stream::AddField(std::string_view name, std::string_view value, const HttpLimits& limits) {
  head_bytes_ += SizeOfField(name, value);
  if (head_bytes_ > limits.max_head_bytes || head_.headers.size() >= limits.max_head_fields)
    head_too_large_ = true;
  if (head_too_large_) return;
  if (name == ":method") {
    head_.method = value;
  } else if (name == ":path") {
    const size_t query = value.find('?');
    head_.path = value.substr(0, query);
    if (query != std::string_view::npos) head_.query = value.substr(query + 1);
  } else if (name == ":authority") {
    head_.authority = value;
  } else if (!name.empty() && name[0] != ':') {
    if (head_.headers.empty()) head_.headers.reserve(kUsualFields);
    head_.headers.emplace_back(name, value);
  }
}

std::optional<HttpResponse> Http2Stream::CompleteHead(const HttpLimits& limits) {
  head_.version = HttpVersion::kHttp2;
  if (head_too_large_) {
    return HttpError(431, absl::StrCat("the head of the request is larger than ", limits.max_head_bytes,
                                       " bytes or ", limits.max_head_fields, " fields; send less"));
  }
  const auto host = FindHeader(head_.headers, "host");
  if (host && !head_.authority.empty() && *host != head_.authority)
    return HttpError(400, "the Host header differs from :authority; send one of them");
  if (host && head_.authority.empty()) head_.authority = std::string(*host);
  if (head_.path.empty() || (head_.path[0] != '/' && head_.path != "*"))
    return HttpError(400, "the request names no path that begins with '/'");
  if (const auto length = FindHeader(head_.headers, "content-length")) {
    uint64_t bytes = 0;
    // nghttp2 has checked that it is a number and that it agrees with the body.
    if (absl::SimpleAtoi(*length, &bytes)) head_.content_length = bytes;
  }
  return std::nullopt;
}

void Http2Stream::ForgetHead() {
  // Moved as a whole: assigning empty strings would keep their memory.
  const RequestHead forgotten = std::move(head_);
}

void Http2Stream::Respond(const HttpResponse& response) {
  SendHead(response.status, {{"content-type", response.content_type},
                             {"content-length", absl::StrCat(response.body.size())},
                             {"x-content-type-options", "nosniff"}});
  const auto body = std::make_shared<const std::string>(response.body);
  SendBody(BytePieces(*body, body));
  End({});
}

void Http2Stream::EndRequest() {
  if (std::exchange(request_ended_, true) || receiver_ == nullptr || was_reset || ended_) return;
  receiver_->OnBodyEnd();
}

void Http2Stream::MoveBody(size_t size, Output& output) {
  in_output_ += size;
  has_moved_ = true;
  body_.MoveTo(output, size);
}

bool Http2Stream::HasStalled(bool is_held, bool all) {
  const bool has_stalled = was_held_ && is_held && (all || !has_moved_);
  was_held_ = is_held;
  has_moved_ = false;
  return has_stalled;
}

void Http2Stream::Written(size_t size) {
  in_output_ -= size;
  if (receiver_ != nullptr) receiver_->OnWritten();
}

}  // namespace saccade::server
