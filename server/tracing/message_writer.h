// Writes protobuf's wire format field by field without building messages. Building a batch of spans as
// messages takes some hundred small allocations per call, which cost several times as much as writing the
// bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace saccade::server {

// Appends to a string.
class MessageWriter {
 public:
  explicit MessageWriter(std::string& bytes) : bytes_(bytes) {}

  // Encloses a nested message: fields added between Begin() and End() belong to it. Pass Begin()'s result to
  // End().
  size_t Begin(int field) {
    AddTag(field, kLengthDelimited);
    return bytes_.size();
  }

  void End(size_t begun) {
    // The length precedes the message, so what was written is moved.
    std::string length;
    AddNumber(bytes_.size() - begun, length);
    bytes_.insert(begun, length);
  }

  void AddBytes(int field, std::string_view value) {
    AddTag(field, kLengthDelimited);
    AddNumber(value.size(), bytes_);
    bytes_.append(value);
  }

  void AddVarint(int field, uint64_t value) {
    AddTag(field, kVarint);
    AddNumber(value, bytes_);
  }

  void AddFixed32(int field, uint32_t value) {
    AddTag(field, kFixed32);
    AddLittleEndian<sizeof(value)>(value);
  }

  void AddFixed64(int field, uint64_t value) {
    AddTag(field, kFixed64);
    AddLittleEndian<sizeof(value)>(value);
  }

 private:
  static constexpr uint64_t kVarint = 0;
  static constexpr uint64_t kFixed64 = 1;
  static constexpr uint64_t kLengthDelimited = 2;
  static constexpr uint64_t kFixed32 = 5;

  static void AddNumber(uint64_t number, std::string& to) {
    for (; number >= 0x80; number >>= 7) to += static_cast<char>((number & 0x7f) | 0x80);
    to += static_cast<char>(number);
  }

  void AddTag(int field, uint64_t type) { AddNumber(static_cast<uint64_t>(field) << 3 | type, bytes_); }

  template <size_t kBytes>
  void AddLittleEndian(uint64_t value) {
    std::array<char, kBytes> raw;
    for (char& byte : raw) {
      byte = static_cast<char>(value);
      value >>= 8;
    }
    bytes_.append(raw.data(), raw.size());
  }

  std::string& bytes_;
};

}  // namespace saccade::server
