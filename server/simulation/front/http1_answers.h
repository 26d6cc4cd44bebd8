// Reads the bytes that a server sends on one HTTP/1.1 connection.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http_headers.h"

namespace saccade::server::simulation {

struct Http1Answer {
  // 100 for an interim answer, which another one follows.
  int status = 0;
  // Names are lower case.
  HttpHeaders headers;
  std::string body;
  bool is_chunked = false;
  // "Connection: close": the connection carries no further answer.
  bool closes = false;
};

// Stricter than a client has to be, so that it notices what proxies would disagree about. Every answer with a
// body must say where that ends: by one Content-Length, or by chunks.
class Http1Answers {
 public:
  // Appends bytes that were received.
  void Add(std::string_view bytes) { bytes_ += bytes; }

  // Takes the next answer; nullopt as long as it is not complete, or if the bytes are malformed. `is_head`:
  // it answers a HEAD, so it has no body.
  std::optional<Http1Answer> Take(bool is_head);

  // Whether the head of the next answer has come.
  bool has_head() const { return bytes_.find("\r\n\r\n") != std::string::npos; }
  // Whether no bytes are left.
  bool empty() const { return bytes_.empty(); }
  // Why the bytes are no answer; empty as long as they may become one.
  const std::string& malformed() const { return malformed_; }

 private:
  // Each returns whether the answer can still be one, and sets malformed_ if not.
  bool ReadHead(std::string_view head, Http1Answer* answer);
  bool ReadField(std::string_view line, Http1Answer* answer);
  bool Malformed(std::string_view why);

  // Read the body from the front of `bytes`. Return how many bytes it takes; nullopt if it is not complete
  // or malformed.
  std::optional<size_t> ReadBody(std::string_view bytes, bool is_head, Http1Answer* answer);
  std::optional<size_t> ReadChunks(std::string_view bytes, Http1Answer* answer);

  std::string bytes_;
  std::string malformed_;
};

}  // namespace saccade::server::simulation
