// Reads the fields of ONNX's messages, which are in protobuf's wire format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/api/error.h"

namespace saccade::models {

enum class OnnxWire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct OnnxField {
  uint64_t number = 0;
  OnnxWire wire = OnnxWire::kVarint;
  // The content of kBytes; empty for numbers.
  std::string_view bytes;
  // The value of kVarint.
  uint64_t value = 0;
};

// Throws the LoadError about a damaged message.
[[noreturn]] inline void RefuseOnnx(const char* name, const std::string& problem) {
  throw LoadError(std::string("the ONNX file is cut short or damaged: ") + name + " " + problem +
                  "; copy the file again, and compare its size and checksum with the source's");
}

// The same for a length that is greater than what is left of the message.
[[noreturn]] inline void RefuseOnnxLength(const char* name, uint64_t bytes, uint64_t left) {
  RefuseOnnx(name,
             "says that " + std::to_string(bytes) + " bytes follow, but there are " + std::to_string(left));
}

// The fields of one message, in their order. The message must outlive what is read from it. All functions
// throw a LoadError if the message is cut short or damaged; it says `name`.
class OnnxFields {
 public:
  OnnxFields(std::string_view message, const char* name) : rest_(message), name_(name) {}

  // Returns false at the end of the message.
  bool Next(OnnxField& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = Varint();
    // Protobuf keeps the lower 32 bits, and so reads the field as another one.
    if (tag >> 32 != 0) Refuse("has a field whose number and kind take more than 32 bits");
    field = {.number = tag >> 3, .wire = static_cast<OnnxWire>(tag & 7), .bytes = {}, .value = 0};
    if (field.number == 0) Refuse("has a field without a number");
    switch (field.wire) {
      case OnnxWire::kVarint:
        field.value = Varint();
        return true;
      case OnnxWire::kFixed64:
        Take(8);
        return true;
      case OnnxWire::kBytes:
        field.bytes = Take(Varint());
        return true;
      case OnnxWire::kFixed32:
        Take(4);
        return true;
    }
    Refuse("has a field of an unknown kind");
  }

 private:
  [[noreturn]] void Refuse(const std::string& problem) const { RefuseOnnx(name_, problem); }

  std::string_view Take(uint64_t bytes) {
    if (bytes > rest_.size()) RefuseOnnxLength(name_, bytes, rest_.size());
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(Take(1).front());
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    Refuse("has a number of more than ten bytes");
  }

  std::string_view rest_;
  const char* const name_;
};

}  // namespace saccade::models
