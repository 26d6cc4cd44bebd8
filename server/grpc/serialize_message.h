// Protocol buffer messages as the bytes to be sent.
#pragma once

#include <google/protobuf/message_lite.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/core/byte_pieces.h"

namespace saccade::server {

// Returns the serialized message. `kept` lives as long as the bytes; it may be null.
inline BytePieces SerializeMessage(const google::protobuf::MessageLite& message,
                                   std::shared_ptr<const void> kept = nullptr) {
  struct Owner {
    std::string bytes;
    std::shared_ptr<const void> kept;
  };
  auto owner = std::make_shared<Owner>();
  message.SerializeToString(&owner->bytes);
  owner->kept = std::move(kept);
  const std::string_view bytes = owner->bytes;
  return BytePieces(bytes, std::move(owner));
}

}  // namespace saccade::server
