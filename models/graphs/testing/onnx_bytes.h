// Writes ONNX's messages for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace saccade::models::testing {

inline std::string Varint(uint64_t value) {
  std::string written;
  for (; value > 0x7F; value >>= 7) written.push_back(static_cast<char>((value & 0x7F) | 0x80));
  written.push_back(static_cast<char>(value));
  return written;
}

inline std::string Message(uint64_t number, const std::string& bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + bytes;
}

inline std::string Number(uint64_t number, uint64_t value) { return Varint(number << 3) + Varint(value); }

// A model whose graph has the bytes.
inline std::string OnnxModel(const std::string& graph) { return Number(1, 8) + Message(7, graph); }

// An input or output: 1 is FP32; a size of -1 is one with a name.
inline std::string OnnxValue(const std::string& name, uint64_t type, const std::vector<int64_t>& dims) {
  std::string shape;
  for (const int64_t dim : dims)
    shape += Message(1, dim < 0 ? Message(2, "n") : Number(1, static_cast<uint64_t>(dim)));
  return Message(1, name) + Message(2, Message(1, Number(1, type) + Message(2, shape)));
}

}  // namespace saccade::models::testing
