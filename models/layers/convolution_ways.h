// Ways to compute a convolution with ATen's operators, which differ in the memory that they take on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "models/layers/packed_weight.h"

namespace saccade::models {

enum class ConvolutionWay {
  kWhole,     // the whole batch in one call of the device's library
  kOneByOne,  // each item in a call of its own
  kColumns    // products of matrices, for which each item is unfolded to columns in turn
};

// In the order in which they are preferred.
inline constexpr std::array<ConvolutionWay, 3> kConvolutionWays = {
    ConvolutionWay::kWhole, ConvolutionWay::kOneByOne, ConvolutionWay::kColumns};

// Returns the convolution of `x`, [B, inputs, (D,) H, W]. The ways round differently.
//
// cuDNN's benchmark mode is left off in all of them, also for shapes that are recorded: LibTorch then
// allocates the largest workspace that any of the algorithms asks for, up to all free memory of the GPU,
// which other models need.
at::Tensor Convolved(ConvolutionWay way, const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& bias, const PackedWeight::Geometry& geometry);

}  // namespace saccade::models
