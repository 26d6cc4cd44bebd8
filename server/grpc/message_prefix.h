// The five bytes before each message of gRPC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace saccade::server {

// A flag (0: as it is, 1: compressed), and the message's length, the highest byte first.
inline constexpr size_t kMessagePrefixBytes = 5;

inline std::array<char, kMessagePrefixBytes> MessagePrefix(char flag, size_t length) {
  std::array<char, kMessagePrefixBytes> prefix{flag};
  for (size_t i = kMessagePrefixBytes - 1; i > 0; --i, length >>= 8)
    prefix[i] = static_cast<char>(length & 0xFF);
  return prefix;
}

inline size_t LengthIn(const std::array<char, kMessagePrefixBytes>& prefix) {
  size_t length = 0;
  for (size_t i = 1; i < prefix.size(); ++i) length = length << 8 | static_cast<unsigned char>(prefix[i]);
  return length;
}

}  // namespace saccade::server
