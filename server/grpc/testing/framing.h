// gRPC's messages as a client writes them.
#pragma once

#include <zlib.h>

#include <string>

#include "absl/strings/string_view.h"
#include "server/grpc/message_prefix.h"

namespace saccade::server {

// A message with its prefix.
inline std::string Framed(absl::string_view message, char flag = 0) {
  const auto prefix = MessagePrefix(flag, message.size());
  return std::string(prefix.data(), prefix.size()).append(message.data(), message.size());
}

// Only the prefix of a message of `length` bytes.
inline std::string PrefixOf(size_t length, char flag = 0) {
  const auto prefix = MessagePrefix(flag, length);
  return std::string(prefix.data(), prefix.size());
}

// The bytes in gzip's format, or in zlib's, which gRPC calls deflate.
inline std::string Compressed(absl::string_view bytes, bool gzip) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, gzip ? MAX_WBITS + 16 : MAX_WBITS, 8,
               Z_DEFAULT_STRATEGY);
  std::string compressed(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

}  // namespace saccade::server
