#include "server/core/tensor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 40;

}  // namespace

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
