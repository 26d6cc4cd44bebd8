#include "server/http/request_parser.h"

// GCC, with sanitizers, takes the library's empty optionals for uninitialised wherever it inlines them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// The two parts of the library that are needed, without its sockets.
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;

// What a browser or a client sends are ten; many small ones take far more memory than bytes on the wire.
constexpr size_t kMaxHeaders = 100;

std::string Text(boost::beast::string_view text) { return {text.data(), text.size()}; }

HttpResponse ParseError(const error_code& error) {
  if (error == http::error::bad_version) {
    return HttpError(
        505, "this is no HTTP/1.1 request; expected 'METHOD /path HTTP/1.1' and headers, as curl sends");
  }
  return HttpError(400, absl::StrCat("not a well-formed HTTP/1.1 request: ", error.message()));
}

}  // namespace

class RequestParser::Engine final : public http::basic_parser<true> {
 public:
  explicit Engine(RequestHead& head) : head_(head) {
    // Who calls bounds both, with a better message.
    body_limit(std::numeric_limits<uint64_t>::max());
    header_limit(std::numeric_limits<uint32_t>::max());
  }

  void SetBody(absl::FunctionRef<bool(absl::string_view)>* body) { body_ = body; }

 private:
  void on_request_impl(http::verb /*verb*/, boost::beast::string_view method,
                       boost::beast::string_view target, int /*version*/, error_code& /*error*/) override {
    head_.method = Text(method);
    const size_t query = target.find('?');
    head_.path = Text(target.substr(0, query));
    if (query != boost::beast::string_view::npos) head_.query = Text(target.substr(query + 1));
  }

  void on_response_impl(int /*status*/, boost::beast::string_view /*reason*/, int /*version*/,
                        error_code& /*error*/) override {}

  void on_field_impl(http::field /*field*/, boost::beast::string_view name, boost::beast::string_view value,
                     error_code& error) override {
    // Trailers come after chunks, and nobody reads them.
    if (in_body_) return;
    if (head_.headers.size() >= kMaxHeaders) {
      error = http::error::header_limit;
      return;
    }
    head_.headers.emplace_back(Text(name), Text(value));
  }

  void on_header_impl(error_code& /*error*/) override { in_body_ = true; }

  void on_body_init_impl(const boost::optional<uint64_t>& /*length*/, error_code& /*error*/) override {}

  size_t on_body_impl(boost::beast::string_view bytes, error_code& /*error*/) override {
    return bytes.size();
  }

  void on_chunk_header_impl(uint64_t /*size*/, boost::beast::string_view /*extensions*/,
                            error_code& /*error*/) override {}

  size_t on_chunk_body_impl(uint64_t /*remaining*/, boost::beast::string_view bytes,
                            error_code& error) override {
    if (!(*body_)({bytes.data(), bytes.size()})) error = http::error::body_limit;
    return bytes.size();
  }

  void on_finish_impl(error_code& /*error*/) override {}

  RequestHead& head_;
  bool in_body_ = false;
  absl::FunctionRef<bool(absl::string_view)>* body_ = nullptr;
};

namespace {

// A proxy in front may use the form with the host in it.
void DropHost(std::string& target) {
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(target, scheme)) continue;
    const size_t path = target.find('/', scheme.size());
    target = path == std::string::npos ? "/" : target.substr(path);
    return;
  }
}

// Sets the length if there is exactly one, and one number.
std::optional<HttpResponse> ReadLength(RequestHead& head) {
  for (const auto& [name, value] : head.headers) {
    if (!absl::EqualsIgnoreCase(name, "Content-Length")) continue;
    uint64_t length = 0;
    if (head.content_length || !absl::SimpleAtoi(value, &length)) {
      return HttpError(400, "Content-Length must be one number, and stand once");
    }
    head.content_length = length;
  }
  return std::nullopt;
}

std::optional<HttpResponse> ReadTransferEncoding(RequestHead& head) {
  const auto coding = FindHeader(head.headers, "Transfer-Encoding");
  if (!coding || (head.chunked && absl::EqualsIgnoreCase(*coding, "chunked"))) return std::nullopt;
  return HttpError(501, "this Transfer-Encoding is not taken; send 'chunked', or a Content-Length");
}

}  // namespace

RequestParser::RequestParser() : engine_(std::make_unique<Engine>(head_)) {}

RequestParser::~RequestParser() = default;

std::optional<HttpResponse> RequestParser::ReadHead(absl::string_view bytes) {
  error_code error;
  const size_t taken = engine_->put({bytes.data(), bytes.size()}, error);
  if (error == http::error::header_limit) {
    return HttpError(431, absl::StrCat("more than ", kMaxHeaders, " headers"));
  }
  if (error) return ParseError(error);
  if (taken != bytes.size() || !engine_->is_header_done()) {
    return HttpError(400, "not a well-formed HTTP/1.1 request: an empty line before its end");
  }
  head_.chunked = engine_->chunked();
  head_.keep_alive = engine_->keep_alive();
  DropHost(head_.path);
  if (head_.path.empty()) return HttpError(400, "not a well-formed HTTP/1.1 request: it names no path");
  if (auto refusal = ReadTransferEncoding(head_)) return refusal;
  return ReadLength(head_);
}

std::optional<HttpResponse> RequestParser::ReadChunks(absl::string_view bytes,
                                                      absl::FunctionRef<bool(absl::string_view)> body,
                                                      size_t* taken) {
  engine_->SetBody(&body);
  // All chunks that are there, rather than one a call.
  engine_->eager(true);
  error_code error;
  *taken = engine_->put({bytes.data(), bytes.size()}, error);
  engine_->SetBody(nullptr);
  // A body that took no more says why itself.
  if (!error || error == http::error::need_more || error == http::error::body_limit) return std::nullopt;
  return ParseError(error);
}

bool RequestParser::body_done() const { return engine_->is_done(); }

}  // namespace saccade::server
