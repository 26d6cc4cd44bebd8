// Helpers for the operators' tests on tensors.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace saccade::kernels {

// LibTorch seeds its generator anew in every process; a fixed seed makes failures reproducible.
struct Seeded {
  Seeded() { at::manual_seed(20260101); }
};
inline const Seeded seeded;

// Normal values with mean 0.2, so that a dropped term changes the result.
inline at::Tensor RandomTensor(at::IntArrayRef shape, at::ScalarType dtype) {
  return at::randn(shape, at::TensorOptions(at::kDouble)).add_(0.2).to(dtype);
}

// Memory layouts of a test map.
enum class Memory { kContiguous, kChannelsLast, kSlicedChannels, kSlicedPositions, kTransposed, kExpanded };

inline at::Tensor RandomMap(std::vector<int64_t> shape, at::ScalarType dtype, Memory memory) {
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  switch (memory) {
    case Memory::kContiguous:
      break;
    case Memory::kChannelsLast:
      if (shape.size() == 3) break;
      return RandomTensor(shape, dtype)
          .contiguous(shape.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d);
    case Memory::kSlicedChannels:
      shape[1] *= 2;
      return RandomTensor(shape, dtype).narrow(1, shape[1] / 2, shape[1] / 2);
    case Memory::kSlicedPositions:
      shape[last] *= 2;
      return RandomTensor(shape, dtype).slice(last, 0, shape[last], 2);
    case Memory::kTransposed:
      std::swap(shape[2], shape[last]);
      return RandomTensor(shape, dtype).transpose(2, last);
    case Memory::kExpanded: {
      std::vector<int64_t> one = shape;
      one[0] = 1;
      return RandomTensor(one, dtype).expand(shape);
    }
  }
  return RandomTensor(shape, dtype);
}

// Returns the relative L2 distance from a float64 result.
inline double RelativeError(const at::Tensor& got, const at::Tensor& expected) {
  const double norm = at::linalg_vector_norm(expected).item<double>();
  const double distance = at::linalg_vector_norm(got.to(at::kDouble).sub(expected)).item<double>();
  return norm == 0 ? distance : distance / norm;
}

// Returns the error that a kernel may have: the smaller of a fixed bound and twice the error of the same
// formulas composed of ATen operators in the same type. One rounding of the result is always allowed.
inline double AllowedError(at::ScalarType dtype, double composed_error) {
  const double bound = dtype == at::kDouble ? 1e-12 : dtype == at::kFloat ? 1e-6 : 1e-2;
  const double rounding = dtype == at::kDouble ? 0x1p-53 : dtype == at::kFloat ? 0x1p-24 : 0x1p-9;
  // In float64 the composition is the reference itself, so only the fixed bound applies.
  return dtype == at::kDouble ? bound : std::min(bound, 2 * std::max(composed_error, rounding));
}

// Returns true if the shapes, dtypes and bits are equal.
inline bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  return x.numel() == 0 || __builtin_memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

// Returns the first line of the error that `call` throws, or "".
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
