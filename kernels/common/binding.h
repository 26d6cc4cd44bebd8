// From tensors to what the code below them takes, and the checks that all operators share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

using OptionalTensor = std::optional<at::Tensor>;

inline at::Tensor TensorOrNone(const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); }

// Checks, each throwing c10::Error in the wording of check.h.

// float32, float64, bfloat16 or float16, [B, C, *spatial] with channels in groups of `heads`.
void CheckInputMap(const char* op, const char* argument, const at::Tensor& map, int64_t heads);
// Same device, dtype and shape as `like`, but for `channels` channels.
void CheckSameMap(const char* op, const char* argument, const at::Tensor& map, const at::Tensor& like,
                  const c10::SymInt& channels);
// On x's device, of x's dtype or of the one that its sums are kept in, and of one of the shapes: more than
// one for a matrix that a 1x1 convolution may have stored.
void CheckWeights(const char* op, const char* argument, const at::Tensor& weights, const at::Tensor& x,
                  std::initializer_list<c10::SymIntArrayRef> shapes);
// A matrix [rows, columns], or [rows, columns, 1...] with a 1 for each spatial dimension of x.
void CheckMatrix(const char* op, const char* argument, const at::Tensor& weights, const at::Tensor& x,
                 const c10::SymInt& rows, const c10::SymInt& columns);
void CheckVector(const char* op, const char* argument, const at::Tensor& weights, const at::Tensor& x,
                 const c10::SymInt& size);
// int64 [B, spatial dims] on the map's device. Its values are looked at by CheckValidExtents alone.
void CheckValid(const char* op, const OptionalTensor& valid, const at::Tensor& map);

// On the CPU only, where looking at values means no waiting: extents within the map, numbers that are
// numbers.
void CheckValidExtents(const char* op, const OptionalTensor& valid, const at::Tensor& map);
void CheckFinite(const char* op, const char* argument, const OptionalTensor& weights);

// What the code below tensors takes.
Dtype DtypeOf(const at::Tensor& tensor);
FeatureMap MapOf(const at::Tensor& map);
OutputMap OutputOf(at::Tensor& map);
// Points into `valid`, which must be contiguous and outlive it.
Extent ExtentOf(const at::Tensor& map, const OptionalTensor& valid);
// Contiguous, in the type that the sums of `x` are kept in; the tensor itself where it already is that.
at::Tensor Prepared(const at::Tensor& weights, const at::Tensor& x);

// An uninitialised [B, channels, *spatial]: dense, channels-last if `like` is, else contiguous.
at::Tensor ResultLike(const at::Tensor& like, const c10::SymInt& channels);

// [B, 1, *spatial] of bool: which positions lie within each sample's extent.
at::Tensor ValidMask(const at::Tensor& map, const at::Tensor& valid);
// Zero beyond each sample's extent. A select and not a product: whatever lies there, NaN included, leaves no
// trace. The map itself without an extent.
at::Tensor Masked(const at::Tensor& map, const OptionalTensor& valid);

}  // namespace saccade::kernels
