#include "server/shadow/compare_tensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace saccade::server {
namespace {

// The elements' types that C++ has no arithmetic for.
struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

template <typename T>
double Value(T element) {
  return static_cast<double>(element);
}

double Value(Bfloat16 element) { return std::bit_cast<float>(static_cast<uint32_t>(element.bits) << 16); }

double Value(Half element) {
  const int exponent = element.bits >> 10 & 0x1F;
  const int fraction = element.bits & 0x3FF;
  const double sign = (element.bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent < 0x1F) return sign * std::ldexp(1024 + fraction, exponent - 25);
  return fraction == 0 ? sign * kIncomparable : std::numeric_limits<double>::quiet_NaN();
}

template <typename T>
double LargestDifference(std::string_view one, std::string_view other) {
  double largest = 0;
  double scale = 1e-12;
  for (size_t at = 0; at + sizeof(T) <= one.size(); at += sizeof(T)) {
    T left;
    T right;
    std::memcpy(&left, one.data() + at, sizeof(T));
    std::memcpy(&right, other.data() + at, sizeof(T));
    if (std::memcmp(&left, &right, sizeof(T)) == 0) {
      // An infinity that both tensors have must not become the scale of the other elements.
      if (const double size = std::abs(Value(left)); std::isfinite(size)) scale = std::max(scale, size);
      continue;
    }
    const double difference = std::abs(Value(left) - Value(right));
    if (!std::isfinite(difference)) return kIncomparable;
    largest = std::max(largest, difference);
    scale = std::max(scale, std::abs(Value(left)));
  }
  return largest / scale;
}

std::string Joined(const Tensor& tensor) {
  std::string bytes(tensor.data.size(), '\0');
  tensor.data.CopyTo(bytes.data());
  return bytes;
}

}  // namespace

TensorDifference CompareTensors(const Tensor& one, const Tensor& other) {
  if (one.name != other.name || one.type != other.type || one.shape != other.shape)
    return {false, kIncomparable};
  const std::string left = Joined(one);
  const std::string right = Joined(other);
  if (left == right) return {true, 0};
  if (left.size() != right.size()) return {false, kIncomparable};
  switch (one.type) {
    case DataType::kUint8:
      return {false, LargestDifference<uint8_t>(left, right)};
    case DataType::kUint16:
      return {false, LargestDifference<uint16_t>(left, right)};
    case DataType::kUint32:
      return {false, LargestDifference<uint32_t>(left, right)};
    case DataType::kUint64:
      return {false, LargestDifference<uint64_t>(left, right)};
    case DataType::kInt8:
      return {false, LargestDifference<int8_t>(left, right)};
    case DataType::kInt16:
      return {false, LargestDifference<int16_t>(left, right)};
    case DataType::kInt32:
      return {false, LargestDifference<int32_t>(left, right)};
    case DataType::kInt64:
      return {false, LargestDifference<int64_t>(left, right)};
    case DataType::kFp16:
      return {false, LargestDifference<Half>(left, right)};
    case DataType::kBf16:
      return {false, LargestDifference<Bfloat16>(left, right)};
    case DataType::kFp32:
      return {false, LargestDifference<float>(left, right)};
    case DataType::kFp64:
      return {false, LargestDifference<double>(left, right)};
    case DataType::kBool:
    case DataType::kBytes:
      break;
  }
  return {false, kIncomparable};
}

}  // namespace saccade::server
