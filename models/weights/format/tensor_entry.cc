#include "models/weights/format/tensor_entry.h"

#include <array>

namespace saccade::models {
namespace {

constexpr std::array<ElementTypeInfo, 15> kTypes = {{
    {ElementType::kBool, "BOOL", "BoolStorage", 1},
    {ElementType::kU8, "U8", "ByteStorage", 1},
    {ElementType::kI8, "I8", "CharStorage", 1},
    {ElementType::kU16, "U16", nullptr, 2},
    {ElementType::kI16, "I16", "ShortStorage", 2},
    {ElementType::kU32, "U32", nullptr, 4},
    {ElementType::kI32, "I32", "IntStorage", 4},
    {ElementType::kU64, "U64", nullptr, 8},
    {ElementType::kI64, "I64", "LongStorage", 8},
    {ElementType::kF8E4M3, "F8_E4M3", nullptr, 1},
    {ElementType::kF8E5M2, "F8_E5M2", nullptr, 1},
    {ElementType::kF16, "F16", "HalfStorage", 2},
    {ElementType::kBF16, "BF16", "BFloat16Storage", 2},
    {ElementType::kF32, "F32", "FloatStorage", 4},
    {ElementType::kF64, "F64", "DoubleStorage", 8},
}};

}  // namespace

std::span<const ElementTypeInfo> ElementTypes() { return kTypes; }

const ElementTypeInfo& Info(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

bool Product(std::span<const int64_t> shape, int64_t& product) {
  product = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0) return false;
    if (size == 0) empty = true;
    // Checks for overflow even if a later dimension is zero, as strides are built from the same product.
    if (size != 0 && __builtin_mul_overflow(product, size, &product)) return false;
  }
  if (empty) product = 0;
  return true;
}

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

}  // namespace saccade::models
