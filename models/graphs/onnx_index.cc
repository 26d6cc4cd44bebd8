#include "models/graphs/onnx_index.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "models/graphs/onnx_fields.h"
#include "models/weights/format/file_contents.h"

namespace saccade::models {
namespace {

struct KeptMessage;

// A field that the index keeps.
struct KeptField {
  uint64_t number = 0;
  // The fields of the message in this field that the index keeps; null if it keeps all of the field.
  const KeptMessage* inside = nullptr;
};

// A message of which the index keeps these fields.
struct KeptMessage {
  // For errors.
  const char* name;
  std::vector<KeptField> fields;
};

const KeptMessage& KeptOfModel() {
  static const KeptMessage tensor = {"a tensor", {{8}}};
  static const KeptMessage graph = {"a graph", {{5, &tensor}, {11}, {12}}};
  static const KeptMessage model = {"the model", {{2}, {3}, {8}, {7, &graph}}};
  return model;
}

void AppendVarint(uint64_t value, std::string& to) {
  for (; value > 0x7F; value >>= 7) to.push_back(static_cast<char>((value & 0x7F) | 0x80));
  to.push_back(static_cast<char>(value));
}

class OnnxIndexReader {
 public:
  OnnxIndexReader(const std::string& path, int64_t max_bytes) : file_(path, max_bytes) {}

  std::string Read() {
    std::string index = Kept(KeptOfModel(), file_.size());
    file_.CheckSize();
    return index;
  }

 private:
  // Returns the kept fields of the message from at_ to `end`, and goes there.
  std::string Kept(const KeptMessage& message, size_t end) {
    std::string kept;
    while (at_ < end) {
      const uint64_t tag = Varint(message, end);
      // As OnnxFields reads it.
      if (tag >> 32 != 0)
        RefuseOnnx(message.name, "has a field whose number and kind take more than 32 bits");
      const uint64_t number = tag >> 3;
      if (number == 0) RefuseOnnx(message.name, "has a field without a number");
      switch (static_cast<OnnxWire>(tag & 7)) {
        case OnnxWire::kVarint:
          Varint(message, end);
          continue;
        case OnnxWire::kFixed64:
          at_ = End(message, 8, end);
          continue;
        case OnnxWire::kFixed32:
          at_ = End(message, 4, end);
          continue;
        case OnnxWire::kBytes:
          KeepBytes(message, number, End(message, Varint(message, end), end), kept);
          continue;
      }
      RefuseOnnx(message.name, "has a field of an unknown kind");
    }
    return kept;
  }

  // Appends the field from at_ to `end` if it is kept, and goes there.
  void KeepBytes(const KeptMessage& message, uint64_t number, size_t end, std::string& kept) {
    const auto field = std::find_if(message.fields.begin(), message.fields.end(),
                                    [&](const KeptField& candidate) { return candidate.number == number; });
    if (field != message.fields.end()) {
      const std::string bytes = field->inside != nullptr ? Kept(*field->inside, end) : Text(end);
      AppendVarint(number << 3 | static_cast<uint64_t>(OnnxWire::kBytes), kept);
      AppendVarint(bytes.size(), kept);
      kept += bytes;
    }
    at_ = end;
  }

  // Returns where `bytes` from at_ on end. Throws if that is behind the message's end.
  size_t End(const KeptMessage& message, uint64_t bytes, size_t end) const {
    if (bytes > end - at_) RefuseOnnxLength(message.name, bytes, end - at_);
    return at_ + bytes;
  }

  std::string Text(size_t end) const {
    std::string text(end - at_, '\0');
    file_.Read(at_, std::as_writable_bytes(std::span(text)));
    return text;
  }

  uint64_t Varint(const KeptMessage& message, size_t end) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const size_t after = End(message, 1, end);
      const auto byte = std::to_integer<uint64_t>(ByteAt(at_));
      at_ = after;
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    RefuseOnnx(message.name, "has a number of more than ten bytes");
  }

  std::byte ByteAt(size_t at) {
    if (at < window_begin_ || at >= window_end_) {
      const size_t bytes = std::min(window_.size(), file_.size() - at);
      file_.Read(at, std::span(window_).first(bytes));
      window_begin_ = at;
      window_end_ = at + bytes;
    }
    return window_[at - window_begin_];
  }

  OpenFile file_;
  size_t at_ = 0;
  // The bytes of the file from window_begin_ to window_end_, so that small fields are read together.
  std::array<std::byte, 4096> window_ = {};
  size_t window_begin_ = 0;
  size_t window_end_ = 0;
};

}  // namespace

std::string ReadOnnxIndex(const std::string& path, int64_t max_bytes) {
  return OnnxIndexReader(path, max_bytes).Read();
}

}  // namespace saccade::models
