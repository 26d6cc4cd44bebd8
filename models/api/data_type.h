// The types of a named tensor's elements, by the names of the Open Inference Protocol. Does not include
// LibTorch.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace saccade::models {

enum class DataType {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kFp32,
  kFp64,
  // Elements of variable length. In a message, each is preceded by its length in 4 bytes, little-endian.
  kBytes,
  kBf16,
};

struct DataTypeInfo {
  const char* name;
  size_t bytes;  // per element; 0 for BYTES
};

// Indexed by DataType.
inline constexpr std::array<DataTypeInfo, 14> kDataTypes = {{{"BOOL", 1},
                                                             {"UINT8", 1},
                                                             {"UINT16", 2},
                                                             {"UINT32", 4},
                                                             {"UINT64", 8},
                                                             {"INT8", 1},
                                                             {"INT16", 2},
                                                             {"INT32", 4},
                                                             {"INT64", 8},
                                                             {"FP16", 2},
                                                             {"FP32", 4},
                                                             {"FP64", 8},
                                                             {"BYTES", 0},
                                                             {"BF16", 2}}};

// Returns the protocol's name: "BOOL", "FP32", "BYTES".
constexpr const char* NameOf(DataType type) { return kDataTypes.at(static_cast<size_t>(type)).name; }

// Returns the bytes per element; 0 for BYTES.
constexpr size_t SizeOf(DataType type) { return kDataTypes.at(static_cast<size_t>(type)).bytes; }

// Returns nullopt unless `name` is one of the protocol's names.
constexpr std::optional<DataType> DataTypeOf(std::string_view name) {
  for (size_t i = 0; i < kDataTypes.size(); ++i) {
    if (std::string_view(kDataTypes[i].name) == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

}  // namespace saccade::models
