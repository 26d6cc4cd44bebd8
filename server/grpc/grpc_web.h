// gRPC-web: gRPC for browsers, which can neither read trailers nor, long ago, bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/http/http_headers.h"

namespace saccade::server {

// How a call's messages lie in the bodies of HTTP.
enum class GrpcForm {
  // gRPC: messages, then HTTP's trailers.
  kGrpc,
  // gRPC-web: the trailers are the last message of the response.
  kWeb,
  // The same, and both bodies are base64.
  kWebText,
};

// The form that a content type names; nothing for one that is not served, such as "application/grpc+json".
std::optional<GrpcForm> FormOf(absl::string_view content_type);

// Decodes base64 that comes in pieces of any size. The text may be several base64 texts, each with its own
// padding, one after the other.
class Base64Decoder {
 public:
  // Appends the bytes of `text` to `to`. False for text that is not base64; then the decoder is of no more
  // use.
  bool Decode(absl::string_view text, std::string& to);
  // Whether the text may end here.
  bool complete() const { return symbols_ == 0; }

 private:
  // Symbols of a group of four that have come, padding included, and their bits.
  int symbols_ = 0;
  int padding_ = 0;
  unsigned int bits_ = 0;
};

// The message that carries the trailers of a gRPC-web response, with its prefix.
std::string TrailersMessage(const HttpHeaders& trailers);

}  // namespace saccade::server
