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

constexpr size_t kQuotedLength = 120;

// Returns the length of the UTF-8 sequence that begins with `lead`, or 0 if it is invalid.
size_t SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// After four leads the second byte has a smaller range, which excludes overlong forms, surrogates and code
// points beyond U+10FFFF.
bool SecondByteFits(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xE0:
      return second >= 0xA0;
    case 0xED:
      return second <= 0x9F;
    case 0xF0:
      return second >= 0x90;
    case 0xF4:
      return second <= 0x8F;
    default:
      return true;
  }
}

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

std::string Quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "'";
  for (const char c : text.substr(0, kQuotedLength)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\'' && c != '\\') {
      quoted += c;
    } else {
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return quoted + (text.size() > kQuotedLength ? "...'" : "'");
}

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = SequenceLength(lead);
    if (length == 0 || length > text.size() - i) return false;
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80 || (k == 1 && !SecondByteFits(lead, next))) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace saccade::models
