// Maps in 8 bits. They are at::kQUInt8 tensors, so a map carries its scale and zero point with it, and an
// operator that does not know them throws instead of computing with the bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace saccade::models {

// How bytes stand for numbers: value = scale * (byte - zero), with 0 <= zero <= 255.
struct Grid {
  double scale = 1;
  int64_t zero = 0;
};

// Returns the numbers rounded to the grid, and limited to what it holds. x is float32 or bfloat16, and
// finite.
at::Tensor Quantized(const at::Tensor& x, const Grid& grid);
// Returns the numbers in `type`, or x itself if it is of this type.
at::Tensor Floats(const at::Tensor& x, at::ScalarType type);

// A copy of a picture's map of either kind, dense in channels-last. (ATen's clone() of a map in 8 bits is
// not.)
at::Tensor CopyOf(const at::Tensor& map);

// The following return a view of the same memory, which keeps that memory alive.

at::Tensor BytesOf(const at::Tensor& quantized);
at::Tensor OnGrid(const at::Tensor& bytes, const Grid& grid);

}  // namespace saccade::models
