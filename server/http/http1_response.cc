#include "server/http/http1_response.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/http/http_message.h"

namespace saccade::server {
namespace {

// "content-type" as "Content-Type": scripts that compare names with case expect HTTP/1.1's usual form.
void AppendName(std::string* to, absl::string_view name) {
  bool first = true;
  for (const char c : name) {
    to->push_back(first ? absl::ascii_toupper(static_cast<unsigned char>(c)) : c);
    first = c == '-';
  }
}

void AppendField(std::string* to, absl::string_view name, absl::string_view value) {
  AppendName(to, name);
  absl::StrAppend(to, ": ", value, "\r\n");
}

}  // namespace

Http1Response::Framing Http1Response::FramingFor(int status, const HttpHeaders& headers) {
  if (request_.is_head || status == 204 || status == 304) return Framing::kNone;
  const auto length = FindHeader(headers, "content-length");
  if (length && absl::SimpleAtoi(*length, &left_)) return Framing::kLength;
  return request_.is_http11 ? Framing::kChunks : Framing::kUntilClose;
}

void Http1Response::AddHead(int status, const HttpHeaders& headers, bool keep_alive) {
  has_head_ = true;
  framing_ = FramingFor(status, headers);
  keep_alive_ = keep_alive && framing_ != Framing::kUntilClose;
  std::string head = absl::StrCat("HTTP/1.1 ", status, " ", HttpReason(status), "\r\n");
  for (const auto& [name, value] : headers) AppendField(&head, name, value);
  if (framing_ == Framing::kChunks) absl::StrAppend(&head, "Transfer-Encoding: chunked\r\n");
  if (!keep_alive_) absl::StrAppend(&head, "Connection: close\r\n");
  // In HTTP/1.1 connections stay open unless something else is said.
  if (keep_alive_ && !request_.is_http11) absl::StrAppend(&head, "Connection: keep-alive\r\n");
  absl::StrAppend(&head, "\r\n");
  output_->Copy(head);
}

size_t Http1Response::AddBody(BytePieces bytes) {
  // A chunk without bytes would end the body.
  if (bytes.size() == 0 || framing_ == Framing::kNone) return 0;
  const size_t size = bytes.size();
  if (framing_ == Framing::kLength) {
    // The client would take what is too much for the next response.
    if (size > left_) {
      left_ = 0;
      keep_alive_ = false;
      return 0;
    }
    left_ -= size;
  }
  if (framing_ == Framing::kChunks) output_->Copy(absl::StrCat(absl::Hex(size), "\r\n"));
  output_->Add(std::move(bytes));
  if (framing_ == Framing::kChunks) output_->Copy("\r\n");
  return size;
}

void Http1Response::AddEnd(const HttpHeaders& trailers) {
  if (framing_ == Framing::kLength && left_ > 0) keep_alive_ = false;
  if (framing_ != Framing::kChunks) return;
  std::string end = "0\r\n";
  if (request_.accepts_trailers) {
    for (const auto& [name, value] : trailers) AppendField(&end, name, value);
  }
  absl::StrAppend(&end, "\r\n");
  output_->Copy(end);
}

}  // namespace saccade::server
