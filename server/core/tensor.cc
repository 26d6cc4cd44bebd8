#include "server/core/tensor.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {
namespace {

struct TypeFacts {
  absl::string_view name;
  size_t size;
};

// Indexed by DataType.
constexpr std::array<TypeFacts, 14> kTypes = {{{"BOOL", 1},
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

constexpr int64_t kMaxElements = int64_t{1} << 40;

}  // namespace

absl::string_view NameOf(DataType type) { return kTypes.at(static_cast<size_t>(type)).name; }

std::optional<DataType> DataTypeOf(absl::string_view name) {
  const auto* found =
      std::find_if(kTypes.begin(), kTypes.end(), [name](const TypeFacts& type) { return type.name == name; });
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<DataType>(found - kTypes.begin());
}

size_t SizeOf(DataType type) { return kTypes.at(static_cast<size_t>(type)).size; }

absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && elements > kMaxElements / extent)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the shape ", ShapeText(shape),
                       " is invalid; expected dimensions of 0 or more and at most 2^40 elements"));
    }
    elements *= extent;
  }
  return elements;
}

absl::Status CheckBytes(const Tensor& tensor) {
  const auto elements = ElementCount(tensor.shape);
  if (!elements.ok()) return elements.status();
  if (tensor.type == DataType::kBytes) return absl::OkStatus();
  const size_t bytes = static_cast<size_t>(*elements) * SizeOf(tensor.type);
  if (tensor.data.size() == bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("holds ", tensor.data.size(), " bytes; ",
                                                 NameOf(tensor.type), " of shape ", ShapeText(tensor.shape),
                                                 " is ", bytes));
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

}  // namespace saccade::server
