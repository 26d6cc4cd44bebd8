// Conversion of tensors to the structs that LibTorch-free code takes, and the checks that all operators
// share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

using OptionalTensor = std::optional<at::Tensor>;

inline at::Tensor TensorOrNone(const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); }

// Each check throws c10::Error in the wording of check.h.

// Expects float32, float64, bfloat16 or float16, [B, C, *spatial], with C a multiple of `heads`.
void CheckInputMap(const char* op, const char* argument, const at::Tensor& map, int64_t heads);
// The same, and [B, C, H, W].
void CheckPicture(const char* op, const char* argument, const at::Tensor& map, int64_t heads);
// Expects the device, dtype and shape of `like`, except for `channels` channels.
void CheckSameMap(const char* op, const char* argument, const at::Tensor& map, const at::Tensor& like,
                  const c10::SymInt& channels);
// Expects x's device, x's dtype or its accumulation dtype, and one of the shapes. A matrix has more than one
// valid shape: it may be stored as a 1x1 convolution.
void CheckWeights(const char* op, const char* argument, const at::Tensor& weights, const at::Tensor& x,
                  std::initializer_list<c10::SymIntArrayRef> shapes);
// Expects a matrix [rows, columns], or [rows, columns, 1...] with a 1 for each spatial dimension of x.
void CheckMatrix(const char* op, const char* argument, const at::Tensor& weights, const at::Tensor& x,
                 const c10::SymInt& rows, const c10::SymInt& columns);
void CheckVector(const char* op, const char* argument, const at::Tensor& weights, const at::Tensor& x,
                 const c10::SymInt& size);
// Expects int64 [B, spatial dims] on the map's device. Only CheckValidExtents reads the values.
void CheckValid(const char* op, const OptionalTensor& valid, const at::Tensor& map);

// For the CPU only, where reading values needs no synchronization: extents must lie within the map, and
// weights must be finite.
void CheckValidExtents(const char* op, const OptionalTensor& valid, const at::Tensor& map);
void CheckFinite(const char* op, const char* argument, const OptionalTensor& weights);

// Conversions to the types of feature_map.h.
Dtype DtypeOf(const at::Tensor& tensor);
FeatureMap MapOf(const at::Tensor& map);
OutputMap OutputOf(at::Tensor& map);
// The result points into `valid`, which must be contiguous and outlive it.
Extent ExtentOf(const at::Tensor& map, const OptionalTensor& valid);
// Returns the weights contiguous and in the accumulation dtype of `x`; the same tensor if it already is.
at::Tensor Prepared(const at::Tensor& weights, const at::Tensor& x);

// Returns an uninitialised [B, channels, *spatial]: channels-last if `like` is, else contiguous.
at::Tensor ResultLike(const at::Tensor& like, const c10::SymInt& channels);

// Returns bool [B, 1, *spatial]: true where a position lies within its sample's extent.
at::Tensor ValidMask(const at::Tensor& map, const at::Tensor& valid);
// Returns the map with zeros beyond each sample's extent, or the map itself if `valid` is empty. Selects
// instead of multiplying, so that NaN in the padding does not propagate.
at::Tensor Masked(const at::Tensor& map, const OptionalTensor& valid);
// Returns `result` with the type and memory format of the input `like`, and with zeros beyond each sample's
// extent.
at::Tensor MaskedLike(const at::Tensor& result, const at::Tensor& like, const OptionalTensor& valid);

}  // namespace saccade::kernels
