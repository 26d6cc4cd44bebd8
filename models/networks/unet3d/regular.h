// Regular attention over a whole map, for the bottom and the decoder blocks: "U-Net+Attn".
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "kernels/attention/attention.h"
#include "models/networks/unet3d/options.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class RegularModule {
 public:
  // Loads the tensors NAME.query, key, value and bn.
  RegularModule(const TensorMap& tensors, const std::string& name, const UnetOptions& options);

  // Returns x plus the batch norm of the attention. Takes time that grows as the square of x's positions.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  kernels::AttentionWeights weights_;
  int64_t heads_;
};

}  // namespace saccade::models
