// Writes one HTTP/1.1 response.
#pragma once

#include <cstdint>
#include <optional>

#include "server/core/byte_pieces.h"
#include "server/http/http_headers.h"
#include "server/net/output.h"

namespace saccade::server {

// Appends to the connection's output; does not flush it.
class Http1Response {
 public:
  struct Request {
    bool is_head = false;
    bool is_http11 = true;
    bool accepts_trailers = false;
  };

  // `output` must outlive the response.
  Http1Response(const Request& request, Output* output) : request_(request), output_(output) {}

  // `keep_alive`: the connection may carry another request.
  void AddHead(int status, const HttpHeaders& headers, bool keep_alive);
  // Appends bytes of the body, which are dropped if the response has none. Returns the number
  // of appended bytes, without the heads of chunks.
  size_t AddBody(BytePieces bytes);
  void AddEnd(const HttpHeaders& trailers);

  bool has_head() const { return has_head_; }
  // After AddEnd(): whether the connection can carry another response. False if the body had another length
  // than its head said, or only the end of the connection ends it.
  bool keep_alive() const { return keep_alive_; }

 private:
  enum class Framing { kNone, kLength, kChunks, kUntilClose };

  Framing FramingFor(int status, const HttpHeaders& headers);

  const Request request_;
  Output* const output_;
  bool has_head_ = false;
  bool keep_alive_ = false;
  Framing framing_ = Framing::kNone;
  // Bytes that are left of the announced length.
  uint64_t left_ = 0;
};

}  // namespace saccade::server
