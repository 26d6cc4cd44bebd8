#include "server/protocols/inference/typed_contents.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/core/bytes_elements.h"

namespace saccade::server {
namespace {

using Contents = inference::InferTensorContents;

// The number of elements in fields other than the type's own.
int64_t CountOtherElements(const Contents& contents, int own) {
  return int64_t{contents.bool_contents_size()} + contents.int_contents_size() +
         contents.int64_contents_size() + contents.uint_contents_size() + contents.uint64_contents_size() +
         contents.fp32_contents_size() + contents.fp64_contents_size() + contents.bytes_contents_size() - own;
}

absl::Status InOtherField(DataType type, absl::string_view field) {
  return absl::InvalidArgumentError(absl::StrCat("has elements in another field of contents than that of ",
                                                 NameOf(type), ", which is ", field));
}

template <typename Field>
absl::StatusOr<BytePieces> WithoutConversion(const Contents& contents, const Field& field, DataType type,
                                             absl::string_view name) {
  if (CountOtherElements(contents, field.size()) > 0) return InOtherField(type, name);
  return BytePieces(std::string_view(reinterpret_cast<const char*>(field.data()),
                                     static_cast<size_t>(field.size()) * sizeof(*field.data())));
}

template <typename T, typename Field>
absl::StatusOr<BytePieces> Narrowed(const Contents& contents, const Field& field, DataType type,
                                    absl::string_view name) {
  if (CountOtherElements(contents, field.size()) > 0) return InOtherField(type, name);
  auto narrow = std::make_shared<std::vector<T>>();
  narrow->reserve(field.size());
  for (const auto number : field) {
    if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("element ", narrow->size(), " is ", number,
                                                     ", which is out of range for ", NameOf(type),
                                                     "; expected ", int64_t{std::numeric_limits<T>::min()},
                                                     " to ", int64_t{std::numeric_limits<T>::max()}));
    }
    narrow->push_back(static_cast<T>(number));
  }
  const std::string_view bytes(reinterpret_cast<const char*>(narrow->data()), narrow->size() * sizeof(T));
  return BytePieces(bytes, std::move(narrow));
}

absl::StatusOr<BytePieces> Joined(const Contents& contents) {
  if (CountOtherElements(contents, contents.bytes_contents_size()) > 0) {
    return InOtherField(DataType::kBytes, "bytes_contents");
  }
  return JoinBytes(
      std::vector<std::string_view>(contents.bytes_contents().begin(), contents.bytes_contents().end()));
}

}  // namespace

absl::StatusOr<BytePieces> BytesOf(const Contents& contents, DataType type) {
  switch (type) {
    case DataType::kBool:
      return WithoutConversion(contents, contents.bool_contents(), type, "bool_contents");
    case DataType::kUint8:
      return Narrowed<uint8_t>(contents, contents.uint_contents(), type, "uint_contents");
    case DataType::kUint16:
      return Narrowed<uint16_t>(contents, contents.uint_contents(), type, "uint_contents");
    case DataType::kUint32:
      return WithoutConversion(contents, contents.uint_contents(), type, "uint_contents");
    case DataType::kUint64:
      return WithoutConversion(contents, contents.uint64_contents(), type, "uint64_contents");
    case DataType::kInt8:
      return Narrowed<int8_t>(contents, contents.int_contents(), type, "int_contents");
    case DataType::kInt16:
      return Narrowed<int16_t>(contents, contents.int_contents(), type, "int_contents");
    case DataType::kInt32:
      return WithoutConversion(contents, contents.int_contents(), type, "int_contents");
    case DataType::kInt64:
      return WithoutConversion(contents, contents.int64_contents(), type, "int64_contents");
    case DataType::kFp32:
      return WithoutConversion(contents, contents.fp32_contents(), type, "fp32_contents");
    case DataType::kFp64:
      return WithoutConversion(contents, contents.fp64_contents(), type, "fp64_contents");
    case DataType::kBytes:
      return Joined(contents);
    case DataType::kFp16:
    case DataType::kBf16:
      break;
  }
  if (CountOtherElements(contents, 0) == 0) return BytePieces();
  return absl::InvalidArgumentError(
      absl::StrCat(NameOf(type), " has no typed contents; send its bytes in raw_input_contents"));
}

}  // namespace saccade::server
