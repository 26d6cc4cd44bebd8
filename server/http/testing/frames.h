// HTTP/2 frames as bytes, for tests that send well-formed and malformed ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saccade::server {

// Types, flags, settings and error codes of RFC 9113.
enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoaway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr uint8_t kEndStream = 0x1;
inline constexpr uint8_t kAck = 0x1;
inline constexpr uint8_t kEndHeaders = 0x4;
inline constexpr uint8_t kPadded = 0x8;
inline constexpr uint8_t kPriorityFlag = 0x20;

enum ErrorCode : uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kFlowControlError = 3,
  kStreamClosed = 5,
  kFrameSizeError = 6,
  kRefusedStream = 7,
  kCancel = 8,
  kCompressionError = 9,
  kEnhanceYourCalm = 11,
};

struct Frame {
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t stream = 0;
  std::string payload = {};
};

using Fields = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift));
  return text;
}

inline uint32_t NumberAt(std::string_view bytes, size_t at, int size) {
  uint32_t value = 0;
  for (int i = 0; i < size; ++i) value = value << 8 | static_cast<uint8_t>(bytes.at(at + i));
  return value;
}

inline std::string BytesOf(const Frame& frame) {
  return BigEndian(frame.payload.size(), 3) + static_cast<char>(frame.type) + static_cast<char>(frame.flags) +
         BigEndian(frame.stream, 4) + frame.payload;
}

// An integer of HPACK with a prefix of 7 bits whose first bit is 0.
inline std::string HpackLength(size_t value) {
  if (value < 127) return std::string(1, static_cast<char>(value));
  std::string text(1, '\x7f');
  for (value -= 127; value >= 128; value /= 128) text.push_back(static_cast<char>(value % 128 | 128));
  text.push_back(static_cast<char>(value));
  return text;
}

// Literal fields, neither indexed nor compressed.
inline std::string HeaderBlock(const Fields& fields) {
  std::string block;
  for (const auto& [name, value] : fields)
    block += '\0' + HpackLength(name.size()) + name + HpackLength(value.size()) + value;
  return block;
}

inline Fields GetFields(const std::string& path = "/") {
  return {{":method", "GET"}, {":scheme", "http"}, {":path", path}, {":authority", "localhost"}};
}
inline Fields PostFields(const std::string& path = "/") {
  return {{":method", "POST"}, {":scheme", "http"}, {":path", path}, {":authority", "localhost"}};
}

inline std::string HeadersFrame(uint32_t stream, const Fields& fields, uint8_t flags) {
  return BytesOf({kHeaders, flags, stream, HeaderBlock(fields)});
}
// A request without a body.
inline std::string Get(uint32_t stream, const std::string& path = "/") {
  return HeadersFrame(stream, GetFields(path), kEndHeaders | kEndStream);
}
// The head of a request whose body follows.
inline std::string Post(uint32_t stream, const std::string& path = "/") {
  return HeadersFrame(stream, PostFields(path), kEndHeaders);
}
inline std::string DataFrame(uint32_t stream, std::string bytes, bool end) {
  return BytesOf({kData, end ? kEndStream : uint8_t{0}, stream, std::move(bytes)});
}
inline std::string Setting(uint16_t name, uint32_t value) { return BigEndian(name, 2) + BigEndian(value, 4); }
inline std::string SettingsFrame(std::string payload = "") {
  return BytesOf({kSettings, 0, 0, std::move(payload)});
}
inline std::string ResetFrame(uint32_t stream, uint32_t code) {
  return BytesOf({kRstStream, 0, stream, BigEndian(code, 4)});
}
inline std::string WindowFrame(uint32_t stream, uint32_t increment) {
  return BytesOf({kWindowUpdate, 0, stream, BigEndian(increment, 4)});
}

// The frames at the front of `bytes`; an incomplete last one is left out.
inline std::vector<Frame> FramesIn(std::string_view bytes) {
  std::vector<Frame> frames;
  constexpr size_t kHead = 9;
  while (bytes.size() >= kHead) {
    const size_t size = NumberAt(bytes, 0, 3);
    if (bytes.size() < kHead + size) break;
    frames.push_back({static_cast<uint8_t>(bytes[3]), static_cast<uint8_t>(bytes[4]),
                      NumberAt(bytes, 5, 4) & 0x7FFFFFFF, std::string(bytes.substr(kHead, size))});
    bytes.remove_prefix(kHead + size);
  }
  return frames;
}

}  // namespace saccade::server
