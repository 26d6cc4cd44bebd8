#include "server/simulation/front/http1_answers.h"

#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace saccade::server::simulation {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
// Larger numbers are none that the front sends.
constexpr uint64_t kMaxLength = uint64_t{1} << 30;

absl::string_view Text(std::string_view text) { return {text.data(), text.size()}; }

// Splits a line off the front of `bytes`; nullopt if its end has not come.
std::optional<std::string_view> TakeLine(std::string_view* bytes) {
  const size_t end = bytes->find(kLineEnd);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = bytes->substr(0, end);
  bytes->remove_prefix(end + kLineEnd.size());
  return line;
}

bool ParseLength(std::string_view text, uint64_t* length) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos &&
         absl::SimpleAtoi(Text(text), length) && *length <= kMaxLength;
}

bool ParseChunkSize(std::string_view text, uint64_t* size) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         absl::SimpleHexAtoi(Text(text), size) && *size <= kMaxLength;
}

}  // namespace

bool Http1Answers::Malformed(std::string_view why) {
  malformed_ = absl::StrCat(Text(why), ": ", absl::CHexEscape(Text(std::string_view(bytes_).substr(0, 100))));
  return false;
}

std::optional<Http1Answer> Http1Answers::Take(bool is_head) {
  if (!malformed_.empty()) return std::nullopt;
  const std::string_view bytes = bytes_;
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  const size_t end = bytes.find(kHeadEnd);
  if (end == std::string_view::npos) return std::nullopt;
  const size_t head_size = end + kHeadEnd.size();
  Http1Answer answer;
  // With the end of its last line.
  if (!ReadHead(bytes.substr(0, end + kLineEnd.size()), &answer)) return std::nullopt;
  const auto body_size = ReadBody(bytes.substr(head_size), is_head, &answer);
  if (!body_size) return std::nullopt;
  bytes_.erase(0, head_size + *body_size);
  return answer;
}

bool Http1Answers::ReadHead(std::string_view head, Http1Answer* answer) {
  const auto line = TakeLine(&head);
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  // "HTTP/1.1 200 OK"; the reason may be missing, but not the space before it.
  const bool is_status_line = line && line->substr(0, kVersion.size()) == kVersion &&
                              line->size() > kVersion.size() + 3 && (*line)[kVersion.size() + 3] == ' ';
  uint64_t status = 0;
  if (!is_status_line || !ParseLength(line->substr(kVersion.size(), 3), &status) || status < 100)
    return Malformed("no status line");
  answer->status = static_cast<int>(status);
  while (const auto field = TakeLine(&head)) {
    if (!ReadField(*field, answer)) return false;
  }
  return true;
}

bool Http1Answers::ReadField(std::string_view line, Http1Answer* answer) {
  const size_t colon = line.find(": ");
  if (colon == 0 || colon == std::string_view::npos ||
      line.substr(0, colon).find(' ') != std::string_view::npos)
    return Malformed("a header without a name");
  std::string name = absl::AsciiStrToLower(Text(line.substr(0, colon)));
  const std::string value(line.substr(colon + 2));
  if (name == "connection" && absl::EqualsIgnoreCase(value, "close")) answer->closes = true;
  if (name == "transfer-encoding") {
    if (value != "chunked" || answer->is_chunked) return Malformed("not one Transfer-Encoding: chunked");
    answer->is_chunked = true;
  }
  if (name == "content-length" && FindHeader(answer->headers, "content-length"))
    return Malformed("two lengths");
  answer->headers.emplace_back(std::move(name), value);
  return true;
}

std::optional<size_t> Http1Answers::ReadBody(std::string_view bytes, bool is_head, Http1Answer* answer) {
  const auto announced = FindHeader(answer->headers, "content-length");
  if (announced && answer->is_chunked) {
    Malformed("a length and chunks");
    return std::nullopt;
  }
  if (is_head || answer->status < 200 || answer->status == 204 || answer->status == 304) return 0;
  if (answer->is_chunked) return ReadChunks(bytes, answer);
  uint64_t length = 0;
  if (!announced || !ParseLength({announced->data(), announced->size()}, &length)) {
    Malformed("a body without a length or chunks");
    return std::nullopt;
  }
  if (bytes.size() < length) return std::nullopt;
  answer->body = std::string(bytes.substr(0, length));
  return length;
}

std::optional<size_t> Http1Answers::ReadChunks(std::string_view bytes, Http1Answer* answer) {
  const size_t begin = bytes.size();
  for (;;) {
    const auto line = TakeLine(&bytes);
    if (!line) return std::nullopt;
    uint64_t size = 0;
    if (!ParseChunkSize(*line, &size)) {
      Malformed("no chunk's size");
      return std::nullopt;
    }
    if (size == 0) break;
    if (bytes.size() < size + kLineEnd.size()) return std::nullopt;
    answer->body += bytes.substr(0, size);
    if (bytes.substr(size, kLineEnd.size()) != kLineEnd) {
      Malformed("a chunk longer than its size");
      return std::nullopt;
    }
    bytes.remove_prefix(size + kLineEnd.size());
  }
  // Trailers, and the empty line that ends them.
  for (;;) {
    const auto line = TakeLine(&bytes);
    if (!line) return std::nullopt;
    if (line->empty()) return begin - bytes.size();
  }
}

}  // namespace saccade::server::simulation
