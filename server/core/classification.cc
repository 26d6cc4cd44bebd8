#include "server/core/classification.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/core/bytes_elements.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

template <typename T>
bool IsNumber(T value) {
  if constexpr (std::is_floating_point_v<T>) return !std::isnan(value);
  return true;
}

// The indices of the `max` largest values. NaN comes last.
template <typename T>
std::vector<int64_t> Largest(const T* row, int64_t elements, int64_t max) {
  const auto before = [row](int64_t a, int64_t b) {
    const bool a_is_number = IsNumber(row[a]);
    const bool b_is_number = IsNumber(row[b]);
    if (a_is_number != b_is_number) return a_is_number;
    if (a_is_number && row[a] != row[b]) return row[a] > row[b];
    return a < b;
  };
  if (max == 0) return {};
  // A row may have millions of elements, also in the worst order: whenever there are twice as many as wanted,
  // the better half is kept. From then on its last one is the bar.
  std::vector<int64_t> best;
  best.reserve(std::min(elements, 2 * max));
  std::optional<int64_t> bar;
  for (int64_t i = 0; i < elements; ++i) {
    if (bar && !before(i, *bar)) continue;
    best.push_back(i);
    if (static_cast<int64_t>(best.size()) < 2 * max) continue;
    std::nth_element(best.begin(), best.begin() + (max - 1), best.end(), before);
    best.resize(max);
    bar = best.back();
  }
  const auto kept = std::min(max, static_cast<int64_t>(best.size()));
  std::partial_sort(best.begin(), best.begin() + kept, best.end(), before);
  best.resize(kept);
  return best;
}

// Like Triton: a number with six decimals, or an integer.
template <typename T>
std::string Printed(T value) {
  if constexpr (std::is_floating_point_v<T>) return absl::StrFormat("%f", value);
  // The unary plus keeps int8_t from being a character.
  else
    return absl::StrCat(+value);
}

// The values, if they need not be copied to be read; else null.
template <typename T>
const T* InPlace(const BytePieces& bytes) {
  if (bytes.pieces().size() != 1) return nullptr;
  const char* const data = bytes.pieces()[0].data();
  return reinterpret_cast<uintptr_t>(data) % alignof(T) == 0 ? reinterpret_cast<const T*>(data) : nullptr;
}

// REQUIRES: CheckBytes(values) is OK.
template <typename T>
Tensor ClassifyRows(const Tensor& values, int64_t rows, int64_t elements, int64_t max,
                    const std::vector<std::string>& labels) {
  std::vector<T> copied;
  const T* numbers = InPlace<T>(values.data);
  if (numbers == nullptr) {
    copied.resize(rows * elements);
    values.data.CopyTo(reinterpret_cast<char*>(copied.data()));
    numbers = copied.data();
  }
  // One text after the other, because objects for hundreds of thousands of them would take ten times as much.
  const auto made = std::make_shared<std::string>();
  std::string text;
  for (int64_t row = 0; row < rows; ++row) {
    const T* const begin = numbers + row * elements;
    for (const int64_t index : Largest(begin, elements, max)) {
      text = absl::StrCat(Printed(begin[index]), ":", index);
      if (index < static_cast<int64_t>(labels.size()) && !labels[index].empty())
        absl::StrAppend(&text, ":", labels[index]);
      AppendElement(text, *made);
    }
  }
  return {
      .name = values.name, .type = DataType::kBytes, .shape = {rows, max}, .data = BytePieces(*made, made)};
}

}  // namespace

absl::StatusOr<Tensor> Classify(const Tensor& values, int64_t classes, const std::vector<std::string>& labels,
                                bool batched) {
  const auto count = ElementCount(values.shape);
  if (!count.ok()) return count.status();
  // ClassifyRows() reads, and may copy, as many values as the shape says.
  if (absl::Status fits = CheckBytes(values); !fits.ok())
    return absl::InternalError(absl::StrCat("output ", Shown(values.name), " ", fits.message()));
  const int64_t rows = batched && !values.shape.empty() ? values.shape[0] : 1;
  const int64_t elements = rows == 0 ? 0 : *count / rows;
  const int64_t max = std::min(classes, elements);
  if (rows > 0 && max > kMaxClassified / rows) {
    return Invalid(absl::StrCat("output ", Shown(values.name)),
                   absl::StrCat("the parameter 'classification' asks for ", max, " values in each of ", rows,
                                " rows; at most ", kMaxClassified, " values are given, so ask for fewer"));
  }
  absl::StatusOr<Tensor> classified;
  const auto of = [&](auto type) {
    return ClassifyRows<decltype(type)>(values, rows, elements, max, labels);
  };
  switch (values.type) {
    case DataType::kFp32:
      classified = of(float());
      break;
    case DataType::kFp64:
      classified = of(double());
      break;
    case DataType::kUint8:
      classified = of(uint8_t());
      break;
    case DataType::kUint16:
      classified = of(uint16_t());
      break;
    case DataType::kUint32:
      classified = of(uint32_t());
      break;
    case DataType::kUint64:
      classified = of(uint64_t());
      break;
    case DataType::kInt8:
      classified = of(int8_t());
      break;
    case DataType::kInt16:
      classified = of(int16_t());
      break;
    case DataType::kInt32:
      classified = of(int32_t());
      break;
    case DataType::kInt64:
      classified = of(int64_t());
      break;
    default:
      return Invalid(absl::StrCat("output ", Shown(values.name)),
                     absl::StrCat("the parameter 'classification' is not supported for ", NameOf(values.type),
                                  "; expected integers, FP32 or FP64; omit the parameter"));
  }
  if (!batched) classified->shape = {classified->shape[1]};
  return classified;
}

}  // namespace saccade::server
