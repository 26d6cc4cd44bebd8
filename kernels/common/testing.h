// For the operators' tests on tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace saccade::kernels {

// Never zero on average: a term that is dropped shows.
inline at::Tensor RandomTensor(at::IntArrayRef shape, at::ScalarType dtype) {
  return at::randn(shape, at::TensorOptions(at::kDouble)).add_(0.2).to(dtype);
}

// Relative L2 distance from a float64 result.
inline double RelativeError(const at::Tensor& got, const at::Tensor& expected) {
  const double norm = at::linalg_vector_norm(expected).item<double>();
  const double distance = at::linalg_vector_norm(got.to(at::kDouble).sub(expected)).item<double>();
  return norm == 0 ? distance : distance / norm;
}

// What a kernel may be off by: a bound of its own, and twice what the same formulas cost when composed of
// ATen operators in the same type. One rounding of the result itself is always allowed.
inline double AllowedError(at::ScalarType dtype, double composed_error) {
  const double bound = dtype == at::kDouble ? 1e-12 : dtype == at::kFloat ? 1e-6 : 1e-2;
  const double rounding = dtype == at::kDouble ? 0x1p-53 : dtype == at::kFloat ? 0x1p-24 : 0x1p-9;
  // In float64 the composition is the reference itself, so there is nothing to compare with.
  return dtype == at::kDouble ? bound : std::min(bound, 2 * std::max(composed_error, rounding));
}

// Same shape, and the same bits in every element.
inline bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  return x.numel() == 0 || __builtin_memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

// The first line of what `call` throws, or nothing.
template <typename Call>
std::string ErrorOf(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

}  // namespace saccade::kernels
