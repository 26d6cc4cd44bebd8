#include "kernels/common/binding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/common/check.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace saccade::kernels {
namespace {

template <typename T>
bool AllFinite(const at::Tensor& tensor) {
  const T* data = tensor.const_data_ptr<T>();
  // 0 * infinity and 0 * NaN are NaN, so the traces stay zero only if every value is finite.
  T traces[16] = {};
  const int64_t count = tensor.numel();
  for (int64_t i = 0; i + 16 <= count; i += 16) {
    for (int64_t lane = 0; lane < 16; ++lane) traces[lane] += data[i + lane] * T{0};
  }
  for (int64_t i = count / 16 * 16; i < count; ++i) traces[0] += data[i] * T{0};
  return std::all_of(traces, traces + 16, [](T trace) { return trace == T{0}; });
}

}  // namespace

void CheckInputMap(const char* op, const char* argument, const at::Tensor& map, int64_t heads) {
  CheckFeatureMap(op, argument, map, heads);
  CheckDtype(op, argument, map, {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf});
}

void CheckPicture(const char* op, const char* argument, const at::Tensor& map, int64_t heads) {
  TORCH_CHECK(map.dim() == 4, op, ": argument '", argument, "' should be [B, C, H, W], got ",
              map.sym_sizes());
  CheckInputMap(op, argument, map, heads);
}

void CheckSameMap(const char* op, const char* argument, const at::Tensor& map, const at::Tensor& like,
                  const c10::SymInt& channels) {
  CheckDevice(op, argument, map, like.device());
  CheckDtype(op, argument, map, {like.scalar_type()});
  std::vector<c10::SymInt> shape = like.sym_sizes().vec();
  shape[1] = channels;
  CheckShape(op, argument, map, shape);
}

void CheckWeights(const char* op, const char* argument, const at::Tensor& weights, const at::Tensor& x,
                  std::initializer_list<c10::SymIntArrayRef> shapes) {
  CheckDevice(op, argument, weights, x.device());
  const auto accumulate = AccumulateType(x.scalar_type());
  if (x.scalar_type() == accumulate) {
    CheckDtype(op, argument, weights, {accumulate});
  } else {
    CheckDtype(op, argument, weights, {accumulate, x.scalar_type()});
  }
  const bool fits = std::any_of(shapes.begin(), shapes.end(),
                                [&](c10::SymIntArrayRef shape) { return weights.sym_sizes() == shape; });
  if (!fits) CheckShape(op, argument, weights, *shapes.begin());
}

void CheckMatrix(const char* op, const char* argument, const at::Tensor& weights, const at::Tensor& x,
                 const c10::SymInt& rows, const c10::SymInt& columns) {
  const std::vector<c10::SymInt> plain = {rows, columns};
  std::vector<c10::SymInt> convolution = plain;
  convolution.resize(static_cast<size_t>(x.dim()), c10::SymInt(1));
  CheckWeights(op, argument, weights, x, {plain, convolution});
}

void CheckVector(const char* op, const char* argument, const at::Tensor& weights, const at::Tensor& x,
                 const c10::SymInt& size) {
  CheckWeights(op, argument, weights, x, {{size}});
}

void CheckValid(const char* op, const OptionalTensor& valid, const at::Tensor& map) {
  if (!valid.has_value()) return;
  CheckDevice(op, "valid", *valid, map.device());
  CheckDtype(op, "valid", *valid, {at::kLong});
  CheckShape(op, "valid", *valid, {map.sym_size(0), c10::SymInt(map.dim() - 2)});
}

void CheckValidExtents(const char* op, const OptionalTensor& valid, const at::Tensor& map) {
  if (!valid.has_value()) return;
  const auto extents = valid->accessor<int64_t, 2>();
  for (int64_t b = 0; b < extents.size(0); ++b) {
    for (int64_t d = 0; d < extents.size(1); ++d) {
      TORCH_CHECK(extents[b][d] >= 0 && extents[b][d] <= map.size(2 + d), op, ": argument 'valid' at [", b,
                  ", ", d, "] should lie in 0..", map.size(2 + d), ", got ", extents[b][d]);
    }
  }
}

void CheckFinite(const char* op, const char* argument, const OptionalTensor& weights) {
  if (!weights.has_value()) return;
  const at::Tensor wide = weights->to(AccumulateType(weights->scalar_type())).contiguous();
  const bool finite = wide.scalar_type() == at::kDouble ? AllFinite<double>(wide) : AllFinite<float>(wide);
  TORCH_CHECK(finite, op, ": argument '", argument, "' should be finite, got infinity or NaN");
}

Dtype DtypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return Dtype::kFloat64;
    case at::kBFloat16:
      return Dtype::kBFloat16;
    case at::kHalf:
      return Dtype::kFloat16;
    default:
      return Dtype::kFloat32;
  }
}

namespace {

template <typename Map, typename Void>
Map BasicMapOf(const at::Tensor& tensor, Void* data) {
  Map map;
  map.data = data;
  map.batch_stride = tensor.stride(0);
  map.channel_stride = tensor.stride(1);
  const auto dims = static_cast<int>(tensor.dim()) - 2;
  for (int d = 0; d < dims; ++d) map.spatial_stride[kMaxSpatialDims - dims + d] = tensor.stride(2 + d);
  return map;
}

}  // namespace

FeatureMap MapOf(const at::Tensor& map) { return BasicMapOf<FeatureMap>(map, map.const_data_ptr()); }

OutputMap OutputOf(at::Tensor& map) { return BasicMapOf<OutputMap>(map, map.mutable_data_ptr()); }

Extent ExtentOf(const at::Tensor& map, const OptionalTensor& valid) {
  Extent extent;
  extent.spatial_dims = static_cast<int>(map.dim()) - 2;
  for (int d = 0; d < extent.spatial_dims; ++d) {
    extent.size[kMaxSpatialDims - extent.spatial_dims + d] = map.size(2 + d);
  }
  if (valid.has_value()) extent.valid = valid->const_data_ptr<int64_t>();
  return extent;
}

at::Tensor Prepared(const at::Tensor& weights, const at::Tensor& x) {
  return weights.to(AccumulateType(x.scalar_type())).contiguous();
}

namespace {

// glibc's malloc reuses freed blocks up to 32 MiB at most. A larger result is fresh memory in every call and
// takes a page fault per page; huge pages reduce that. Does nothing if the system has no huge pages.
void PreferHugePages(const at::Tensor& tensor) {
#if defined(__linux__)
  constexpr uintptr_t kHugePage = 2 << 20;
  if (!tensor.device().is_cpu() || tensor.nbytes() <= 16 * kHugePage) return;
  const auto begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t last = (begin + tensor.nbytes()) / kHugePage * kHugePage;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace

at::Tensor ResultLike(const at::Tensor& like, const c10::SymInt& channels) {
  std::vector<c10::SymInt> shape = like.sym_sizes().vec();
  shape[1] = channels;
  at::Tensor result = at::empty_symint(shape, like.options().memory_format(like.suggest_memory_format()));
  PreferHugePages(result);
  return result;
}

at::Tensor ValidMask(const at::Tensor& map, const at::Tensor& valid) {
  at::Tensor mask;
  for (int64_t dim = 2; dim < map.dim(); ++dim) {
    const at::Tensor index = at::arange(c10::Scalar(map.sym_size(dim)), valid.options());
    at::Tensor inside = index.unsqueeze(0) < valid.select(1, dim - 2).unsqueeze(1);
    for (int64_t d = 1; d < map.dim() - 1; ++d) inside = inside.unsqueeze(d < dim ? 1 : -1);
    mask = mask.defined() ? mask & inside : inside;
  }
  return mask;
}

at::Tensor Masked(const at::Tensor& map, const OptionalTensor& valid) {
  return valid.has_value() ? at::where(ValidMask(map, *valid), map, at::zeros({}, map.options())) : map;
}

at::Tensor MaskedLike(const at::Tensor& result, const at::Tensor& like, const OptionalTensor& valid) {
  return Masked(result.to(like.scalar_type()), valid).contiguous(like.suggest_memory_format());
}

}  // namespace saccade::kernels
