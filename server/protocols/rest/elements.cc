#include "server/protocols/rest/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

template <typename T>
void Append(T value, std::string& to) {
  const size_t had = to.size();
  to.resize(had + sizeof(value));
  std::memcpy(&to[had], &value, sizeof(value));
}

std::string Text(const RestElement& element) {
  struct Writer {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return absl::StrCat(value); }
    std::string operator()(uint64_t value) const { return absl::StrCat(value); }
    std::string operator()(double value) const { return absl::StrCat(value); }
    std::string operator()(absl::string_view value) const {
      return absl::StrCat("the string ", Shown(value));
    }
  };
  return std::visit(Writer(), element);
}

// Returns false if the element does not fit T.
template <typename T>
bool AppendInteger(const RestElement& element, std::string& to) {
  using Limits = std::numeric_limits<T>;
  if (const auto* number = std::get_if<uint64_t>(&element)) {
    if (*number > static_cast<uint64_t>(Limits::max())) return false;
    Append(static_cast<T>(*number), to);
    return true;
  }
  const auto* number = std::get_if<int64_t>(&element);
  // Non-negative integers are uint64_t.
  if (number == nullptr || std::is_unsigned_v<T> || *number < static_cast<int64_t>(Limits::min()))
    return false;
  Append(static_cast<T>(*number), to);
  return true;
}

// The strings that stand for these numbers in answers, too. Nullopt for other texts.
template <typename T>
std::optional<T> NotFinite(absl::string_view text) {
  if (text == "NaN") return std::numeric_limits<T>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<T>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<T>::infinity();
  return std::nullopt;
}

template <typename T>
bool AppendReal(const RestElement& element, std::string& to) {
  double value = 0;
  if (const auto* real = std::get_if<double>(&element)) {
    value = *real;
  } else if (const auto* natural = std::get_if<uint64_t>(&element)) {
    value = static_cast<double>(*natural);
  } else if (const auto* negative = std::get_if<int64_t>(&element)) {
    value = static_cast<double>(*negative);
  } else if (const auto* text = std::get_if<absl::string_view>(&element)) {
    const std::optional<T> special = NotFinite<T>(*text);
    if (special) Append(*special, to);
    return special.has_value();
  } else {
    return false;
  }
  if (std::abs(value) > static_cast<double>(std::numeric_limits<T>::max())) return false;
  Append(static_cast<T>(value), to);
  return true;
}

bool AppendBool(const RestElement& element, std::string& to) {
  const auto* value = std::get_if<bool>(&element);
  if (value != nullptr) to.push_back(*value ? 1 : 0);
  return value != nullptr;
}

bool AppendTo(DataType type, const RestElement& element, std::string& to) {
  switch (type) {
    case DataType::kBool:
      return AppendBool(element, to);
    case DataType::kUint8:
      return AppendInteger<uint8_t>(element, to);
    case DataType::kUint16:
      return AppendInteger<uint16_t>(element, to);
    case DataType::kUint32:
      return AppendInteger<uint32_t>(element, to);
    case DataType::kUint64:
      return AppendInteger<uint64_t>(element, to);
    case DataType::kInt8:
      return AppendInteger<int8_t>(element, to);
    case DataType::kInt16:
      return AppendInteger<int16_t>(element, to);
    case DataType::kInt32:
      return AppendInteger<int32_t>(element, to);
    case DataType::kInt64:
      return AppendInteger<int64_t>(element, to);
    case DataType::kFp32:
      return AppendReal<float>(element, to);
    case DataType::kFp64:
      return AppendReal<double>(element, to);
    case DataType::kFp16:
    case DataType::kBf16:
    case DataType::kBytes:
      break;
  }
  return false;
}

absl::string_view ExpectedOf(DataType type) {
  switch (type) {
    case DataType::kBool:
      return "true or false";
    case DataType::kFp32:
    case DataType::kFp64:
      return "a number within its range, \"NaN\", \"Infinity\" or \"-Infinity\"";
    case DataType::kBytes:
      return "a string; send elements that are not UTF-8 as binary data";
    default:
      return "an integer within its range";
  }
}

}  // namespace

RestElements::RestElements(DataType type, const std::vector<int64_t>& shape, size_t max, size_t reserved)
    : type_(type), max_(max), expected_(ElementCount(shape).value_or(std::numeric_limits<int64_t>::max())) {
  bytes_.reserve(reserved);
}

absl::Status RestElements::Wrong(absl::string_view problem) const {
  return absl::InvalidArgumentError(absl::StrCat("data: element ", count_, " ", problem));
}

void RestElements::EndArray() { ended_ = --open_ == 0; }

absl::Status RestElements::AddText(absl::string_view text) {
  if (text.size() > std::numeric_limits<uint32_t>::max()) return Wrong("is too long");
  Append(static_cast<uint32_t>(text.size()), bytes_);
  bytes_.append(text.data(), text.size());
  return absl::OkStatus();
}

absl::Status RestElements::AddNumber(const RestElement& element) {
  if (AppendTo(type_, element, bytes_)) return absl::OkStatus();
  return Wrong(absl::StrCat("is ", Text(element), ", which is not a valid ", NameOf(type_), "; expected ",
                            ExpectedOf(type_)));
}

absl::Status RestElements::Keep(const RestElement& element) {
  const auto* text = std::get_if<absl::string_view>(&element);
  const bool is_text = text != nullptr && type_ == DataType::kBytes;
  const size_t size = is_text ? sizeof(uint32_t) + text->size() : SizeOf(type_);
  if (bytes_.size() + size > max_) {
    return absl::InvalidArgumentError(
        absl::StrCat("data: its first ", count_ + 1, " elements take more than the ", max_,
                     " bytes that are left of --max-message-bytes; send fewer, or binary data"));
  }
  return is_text ? AddText(*text) : AddNumber(element);
}

absl::Status RestElements::Add(const RestElement& element) {
  if (type_ == DataType::kFp16 || type_ == DataType::kBf16) {
    return absl::InvalidArgumentError(
        absl::StrCat("data: ", NameOf(type_), " cannot be sent as JSON; send it as binary data"));
  }
  if (count_ >= expected_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data: has more than the ", expected_, " elements that the shape requires; send as many as it says"));
  }
  if (absl::Status kept = Keep(element); !kept.ok()) return kept;
  ++count_;
  return absl::OkStatus();
}

BytePieces RestElements::Take() {
  const auto kept = std::make_shared<const std::string>(std::move(bytes_));
  return BytePieces(*kept, kept);
}

}  // namespace saccade::server
