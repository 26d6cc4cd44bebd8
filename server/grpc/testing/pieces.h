// Messages as the network delivers them, for tests.
#pragma once

#include <google/protobuf/message_lite.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "server/core/byte_pieces.h"

namespace saccade::server::testing {

// `bytes` in pieces of at most `max` bytes, each in memory of its own.
inline BytePieces InPieces(const std::string& bytes, size_t max) {
  const auto owner = std::make_shared<std::vector<std::string>>();
  owner->reserve(bytes.size() / max + 1);
  BytePieces pieces(std::string_view(), owner);
  for (size_t begin = 0; begin < bytes.size(); begin += max) {
    pieces.Add(owner->emplace_back(bytes.substr(begin, max)));
  }
  return pieces;
}

inline BytePieces InPieces(const google::protobuf::MessageLite& message, size_t max) {
  return InPieces(message.SerializeAsString(), max);
}

// `count` times `part`.
inline std::string Repeated(const std::string& part, int count) {
  std::string bytes;
  bytes.reserve(part.size() * static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) bytes += part;
  return bytes;
}

inline std::string Joined(const BytePieces& pieces) {
  std::string bytes(pieces.size(), '\0');
  pieces.CopyTo(bytes.data());
  return bytes;
}

}  // namespace saccade::server::testing
