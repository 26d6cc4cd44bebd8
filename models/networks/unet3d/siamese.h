// Siamese attention over a whole map, for the bottom and the decoder blocks.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "models/layers/batch_norm.h"
#include "models/networks/unet3d/options.h"
#include "models/weights/weights.h"

namespace saccade::models {

// The weights of siamese attention.
struct SiameseWeights {
  // Loads the tensors NAME.query, key, value, w and bn.
  SiameseWeights(const TensorMap& tensors, const std::string& name, const UnetOptions& options);

  at::Tensor query, key, value;  // float32 [C, C]
  std::optional<at::Tensor> w;   // float32 [C]
  Affine norm;                   // of the attention's result
  int64_t heads;
  bool global_term;
};

// Immutable and thread-safe.
class SiameseModule {
 public:
  explicit SiameseModule(SiameseWeights weights) : weights_(std::move(weights)) {}

  // Returns x plus the batch norm of the attention, which is divided by the number of positions of x.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  SiameseWeights weights_;
};

}  // namespace saccade::models
