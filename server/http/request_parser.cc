#include "server/http/request_parser.h"

// With sanitizers, GCC reports the library's empty optionals as uninitialised wherever it inlines them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// The two parts of the library that are needed, without its sockets.
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/http/authority.h"

namespace saccade::server {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;

// What HTTP/2 counts for each field beside its bytes (RFC 9113, 6.5.2).
constexpr size_t kFieldCost = 32;

absl::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

HttpResponse NotARequest(absl::string_view why) {
  return HttpError(400, absl::StrCat("not a well-formed HTTP/1.1 request: ", why));
}

HttpResponse ParseError(const error_code& error) {
  if (error == http::error::bad_version) {
    return HttpError(
        505, "this is no HTTP/1.1 request; expected 'METHOD /path HTTP/1.1' and headers, as curl sends");
  }
  return NotARequest(error.message());
}

}  // namespace

class RequestParser::Engine final : public http::basic_parser<true> {
 public:
  using Body = absl::FunctionRef<size_t(absl::string_view)>;

  Engine(RequestHead& head, size_t max_fields) : head_(head), max_fields_(max_fields) {
    // The callers bound both, with a better message.
    body_limit(std::numeric_limits<uint64_t>::max());
    header_limit(std::numeric_limits<uint32_t>::max());
  }

  void SetBody(Body* body) { body_ = body; }
  // 10 or 11.
  int version() const { return version_; }

 private:
  void on_request_impl(http::verb /*verb*/, boost::beast::string_view method,
                       boost::beast::string_view target, int version, error_code& /*error*/) override {
    version_ = version;
    head_.method = std::string(View(method));
    head_.path = std::string(View(target));
  }

  void on_response_impl(int /*status*/, boost::beast::string_view /*reason*/, int /*version*/,
                        error_code& /*error*/) override {}

  void on_field_impl(http::field /*field*/, boost::beast::string_view name, boost::beast::string_view value,
                     error_code& error) override {
    // Trailers follow a chunked body; they are not used.
    if (in_body_) return;
    if (head_.headers.size() >= max_fields_) {
      error = http::error::header_limit;
      return;
    }
    head_.headers.emplace_back(absl::AsciiStrToLower(View(name)), std::string(View(value)));
  }

  void on_header_impl(error_code& /*error*/) override { in_body_ = true; }

  void on_body_init_impl(const boost::optional<uint64_t>& /*length*/, error_code& /*error*/) override {}

  size_t on_body_impl(boost::beast::string_view bytes, error_code& /*error*/) override {
    return bytes.size();
  }

  void on_chunk_header_impl(uint64_t /*size*/, boost::beast::string_view extensions,
                            error_code& error) override {
    // Beast takes a line's end within quotes, where a proxy may see the end of the chunk's head.
    const auto is_control = [](char byte) {
      return (static_cast<unsigned char>(byte) < 0x20 && byte != '\t') || byte == 0x7f;
    };
    if (std::any_of(extensions.begin(), extensions.end(), is_control))
      error = http::error::bad_chunk_extension;
  }

  size_t on_chunk_body_impl(uint64_t /*remaining*/, boost::beast::string_view bytes,
                            error_code& error) override {
    const size_t taken = (*body_)(View(bytes));
    // Stops the parser; it goes on with the next byte in a later call.
    if (taken < bytes.size()) error = http::error::need_buffer;
    return taken;
  }

  void on_finish_impl(error_code& /*error*/) override {}

  RequestHead& head_;
  const size_t max_fields_;
  int version_ = 0;
  bool in_body_ = false;
  Body* body_ = nullptr;
};

namespace {

// Splits the request target, which path holds, into authority (if it has one), path and query.
std::optional<HttpResponse> SplitTarget(RequestHead& head) {
  std::string target = std::exchange(head.path, "");
  // Proxies may send the form with scheme and host.
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(target, scheme)) continue;
    const size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
    head.authority = target.substr(scheme.size(), end - scheme.size());
    if (!ParseAuthority(head.authority)) return NotARequest("its target names no valid host");
    target = target.substr(end);
    if (target.empty() || target[0] == '?') target.insert(0, 1, '/');
    break;
  }
  const size_t query = target.find('?');
  head.path = target.substr(0, query);
  if (query != std::string::npos) head.query = target.substr(query + 1);
  if (head.path.empty()) return NotARequest("it names no path");
  if (head.path[0] == '/' || (head.path == "*" && head.method == "OPTIONS")) return std::nullopt;
  return NotARequest("its path does not begin with '/'");
}

// RFC 9112, 3.2: a request without Host, with two, or with an invalid one is answered 400.
std::optional<HttpResponse> ReadHost(RequestHead& head, bool required) {
  const std::string* host = nullptr;
  for (const auto& [name, value] : head.headers) {
    if (name != "host") continue;
    if (host != nullptr) return NotARequest("it has more than one Host");
    host = &value;
  }
  if (host == nullptr) {
    if (required) return NotARequest("it has no Host");
    return std::nullopt;
  }
  if (!host->empty() && !ParseAuthority(*host)) return NotARequest("its Host is no name with a port");
  // A host in the target counts instead of Host.
  if (head.authority.empty()) head.authority = *host;
  return std::nullopt;
}

// Sets the length if there is exactly one, and it is a number.
std::optional<HttpResponse> ReadLength(RequestHead& head) {
  for (const auto& [name, value] : head.headers) {
    if (name != "content-length") continue;
    uint64_t length = 0;
    const bool digits = value.find_first_not_of("0123456789") == std::string::npos;
    if (head.content_length || !digits || !absl::SimpleAtoi(value, &length)) {
      return HttpError(400, "Content-Length must be one number, and occur once");
    }
    head.content_length = length;
  }
  return std::nullopt;
}

std::optional<HttpResponse> ReadTransferEncoding(const RequestHead& head, bool chunked, bool is_http11) {
  const auto coding = FindHeader(head.headers, "transfer-encoding");
  if (!coding) return std::nullopt;
  if (!is_http11) return NotARequest("HTTP/1.0 has no Transfer-Encoding");
  if (chunked && absl::EqualsIgnoreCase(*coding, "chunked")) return std::nullopt;
  return HttpError(501, "this Transfer-Encoding is not known; send 'chunked', or a Content-Length");
}

}  // namespace

RequestParser::RequestParser(const HttpLimits& limits)
    : limits_(limits), engine_(std::make_unique<Engine>(head_, limits.max_head_fields)) {}

RequestParser::~RequestParser() = default;

std::optional<HttpResponse> RequestParser::ReadHead(absl::string_view bytes) {
  // The library joins lines that were folded; RFC 9112, 5.2, allows to refuse them instead.
  if (absl::StrContains(bytes, "\r\n ") || absl::StrContains(bytes, "\r\n\t")) {
    return NotARequest("a line begins with a space");
  }
  error_code error;
  const size_t taken = engine_->put({bytes.data(), bytes.size()}, error);
  if (error == http::error::header_limit) {
    return HttpError(431, absl::StrCat("more than ", limits_.max_head_fields, " headers"));
  }
  if (error) return ParseError(error);
  if (taken != bytes.size() || !engine_->is_header_done()) {
    return NotARequest("an empty line before its end");
  }
  chunked_ = engine_->chunked();
  keep_alive_ = engine_->keep_alive();
  is_http11_ = engine_->version() >= 11;
  return CheckHead();
}

std::optional<HttpResponse> RequestParser::CheckHead() {
  head_.version = HttpVersion::kHttp1;
  if (auto refusal = SplitTarget(head_)) return refusal;
  if (auto refusal = CheckSize()) return refusal;
  if (auto refusal = ReadHost(head_, is_http11_)) return refusal;
  if (auto refusal = ReadTransferEncoding(head_, chunked_, is_http11_)) return refusal;
  if (auto refusal = ReadLength(head_)) return refusal;
  head_.has_body = chunked_ || head_.content_length.value_or(0) > 0;
  return std::nullopt;
}

// Counted as HTTP/2 counts, so that both versions have the same bound.
std::optional<HttpResponse> RequestParser::CheckSize() const {
  size_t bytes = head_.method.size() + head_.path.size() + head_.query.size() + 2 * kFieldCost;
  for (const auto& [name, value] : head_.headers) bytes += name.size() + value.size() + kFieldCost;
  if (bytes <= limits_.max_head_bytes) return std::nullopt;
  return HttpError(
      431, absl::StrCat("more than ", limits_.max_head_bytes, " bytes of headers, of which each ", "counts ",
                        kFieldCost, " more than its name and value have"));
}

std::optional<HttpResponse> RequestParser::ReadChunks(absl::string_view bytes,
                                                      absl::FunctionRef<size_t(absl::string_view)> body,
                                                      size_t* taken) {
  engine_->SetBody(&body);
  // Parses all chunks in `bytes`, not one in each call.
  engine_->eager(true);
  error_code error;
  *taken = engine_->put({bytes.data(), bytes.size()}, error);
  engine_->SetBody(nullptr);
  if (!error || error == http::error::need_more || error == http::error::need_buffer) return std::nullopt;
  return ParseError(error);
}

bool RequestParser::body_done() const { return engine_->is_done(); }

}  // namespace saccade::server
