// Reads the bytes of one HTTP/1.1 request. Hides the library that parses; does no I/O.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/http/exchange.h"
#include "server/http/http_limits.h"
#include "server/http/http_message.h"

namespace saccade::server {

// Parses one request. Not thread-safe.
class RequestParser {
 public:
  explicit RequestParser(const HttpLimits& limits);
  ~RequestParser();

  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // `bytes` reaches to the empty line that ends the head, and no further. Returns the response for bytes that
  // are no request, and for requests whose length or host is ambiguous: by such, requests are smuggled past a
  // proxy.
  std::optional<HttpResponse> ReadHead(absl::string_view bytes);

  // REQUIRES for the following: ReadHead() returned no error.
  const RequestHead& head() const { return head_; }
  // Whether the body comes in chunks.
  bool chunked() const { return chunked_; }
  // Whether the client wants the connection to stay open.
  bool keep_alive() const { return keep_alive_; }
  // False for HTTP/1.0.
  bool is_http11() const { return is_http11_; }

  // Parses bytes of a chunked body. Hands the content to `body`, which returns how many bytes it takes; if it
  // takes fewer than it gets, parsing stops. Sets `taken` to the number of bytes of the front of `bytes` that
  // are done with; the others must be given again, with more after them. Returns the response for bytes that
  // are not chunks. REQUIRES: chunked(), and !body_done().
  std::optional<HttpResponse> ReadChunks(absl::string_view bytes,
                                         absl::FunctionRef<size_t(absl::string_view)> body, size_t* taken);

  bool body_done() const;

 private:
  class Engine;

  std::optional<HttpResponse> CheckHead();
  std::optional<HttpResponse> CheckSize() const;

  const HttpLimits& limits_;
  RequestHead head_;
  bool chunked_ = false;
  bool keep_alive_ = false;
  bool is_http11_ = false;
  std::unique_ptr<Engine> engine_;
};

}  // namespace saccade::server
