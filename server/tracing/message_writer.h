// Protobuf's wire format, written field by field without messages in between. A batch of spans as messages is
// some hundred small allocations a call, several times what writing its bytes costs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace saccade::server {

// Writes at the end of a text.
class MessageWriter {
 public:
  explicit MessageWriter(std::string& bytes) : bytes_(bytes) {}

  // A message within: what is added between Begin and End, and what Begin gave, belongs to it.
  size_t Begin(int field) {
    AddTag(field, kLengthDelimited);
    return bytes_.size();
  }

  void End(size_t begun) {
    // What is written already makes room for its length.
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
