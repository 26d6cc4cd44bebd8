// What both file formats come down to: named, checked views of bytes. No LibTorch here.
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
  const char* torch_storage;  // the class in a pickle, or nullptr if a state_dict stores it otherwise
  int64_t size;
};

std::span<const ElementTypeInfo> ElementTypes();
const ElementTypeInfo& Info(ElementType type);

// A tensor inside a file. Every element that shape and strides reach lies within the file's bytes, which the
// entry does not own. `data` may have any alignment.
struct TensorEntry {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements, none negative
  const std::byte* data = nullptr;
};

// The product of a shape. False if a dimension is negative or the product does not fit.
bool Product(std::span<const int64_t> shape, int64_t& product);

// Text from a file made fit for a message: quoted, shortened, and free of control characters.
std::string Quote(std::string_view text);
std::string ShapeText(std::span<const int64_t> shape);

// Whether it is well-formed UTF-8 (no overlong forms, no surrogates).
bool IsUtf8(std::string_view text);

}  // namespace saccade::models
