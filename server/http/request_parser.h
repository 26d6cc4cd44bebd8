// Reads the bytes of one HTTP/1.1 request. The library that parses stays behind it; it does no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"

namespace saccade::server {

struct RequestHead {
  std::string method;
  // As sent; never empty.
  std::string path;
  std::string query;
  HttpHeaders headers;
  // Nothing if it does not say, or comes in chunks.
  std::optional<uint64_t> content_length;
  bool chunked = false;
  // Whether the client wants the connection to stay.
  bool keep_alive = false;

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

// Of one request, by one thread.
class RequestParser {
 public:
  RequestParser();
  ~RequestParser();

  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // `bytes` reaches to the empty line that ends the headers, and no further. The error that answers what is
  // no request, or one whose length is doubtful: that is how requests are smuggled past a proxy.
  std::optional<HttpResponse> ReadHead(absl::string_view bytes);

  // REQUIRES: ReadHead gave no error.
  const RequestHead& head() const { return head_; }

  // Takes from the front of `bytes` what it understands of a chunked body, up to its end, and hands on what
  // is inside as long as `body` returns true. Sets how much was taken; nothing means that more bytes are
  // needed. The error that answers what is no chunk. REQUIRES: the head says chunked, and !body_done().
  std::optional<HttpResponse> ReadChunks(absl::string_view bytes,
                                         absl::FunctionRef<bool(absl::string_view)> body, size_t* taken);

  bool body_done() const;

 private:
  class Engine;

  RequestHead head_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace saccade::server
