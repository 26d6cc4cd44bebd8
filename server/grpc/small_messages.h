// Requests of the services in this folder.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <string>

#include "server/core/byte_pieces.h"
#include "server/grpc/message_size.h"

namespace saccade::server {

inline constexpr size_t kMaxSmallMessage = size_t{4} << 10;

// False if the bytes are no such message, or more than a request of these services may have.
inline bool ParseSmallMessage(const BytePieces& bytes, google::protobuf::Message& message) {
  if (bytes.size() > kMaxSmallMessage || !ParsedSize(bytes, *message.GetDescriptor()).ok()) return false;
  std::string whole(bytes.size(), '\0');
  bytes.CopyTo(whole.data());
  return message.ParseFromString(whole);
}

}  // namespace saccade::server
