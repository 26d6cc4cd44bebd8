// What both file formats are parsed to: named, checked views of bytes. Does not include LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saccade::models {

using Bytes = std::span<const std::byte>;

enum class ElementType {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF8E4M3,
  kF8E5M2,
  kF16,
  kBF16,
  kF32,
  kF64
};

struct ElementTypeInfo {
  ElementType type;
  const char* safetensors_name;
  const char* torch_storage;  // the class in a pickle; nullptr if state_dicts do not use one
  int64_t size;
};

std::span<const ElementTypeInfo> ElementTypes();
const ElementTypeInfo& Info(ElementType type);

// Maximum number of dimensions of a tensor in a file.
inline constexpr size_t kMaxDimensions = 16;

// A tensor in a file. Every element that shape and strides reach lies within the file's bytes, which the
// entry does not own. `data` may have any alignment.
struct TensorEntry {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements, none negative
  const std::byte* data = nullptr;
};

// Computes the product of a shape. Returns false if a dimension is negative or the product overflows.
bool Product(std::span<const int64_t> shape, int64_t& product);

// Returns "[2, 3]" for {2, 3}.
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace saccade::models
