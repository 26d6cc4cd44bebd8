// The attention of an AttnModule with its weights, of whose Q, K and V only the values are transformed; or
// squeeze-and-excite in its place.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "models/layers/convolution.h"
#include "models/networks/mobile/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class AttentionPath {
 public:
  // Folds the batch norm. If `skip`, x is added to the result.
  AttentionPath(const MobileOptions& options, const TensorMap& tensors, const std::string& name, bool skip);

  // x is [B, C, H, W], channels-last, as is the result.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor Regular(const at::Tensor& x, const char* kind) const;
  at::Tensor Kronecker(const at::Tensor& x, const char* kind) const;
  at::Tensor Squeezed(const at::Tensor& x) const;

  std::string name_;
  MobileOptions options_;
  bool skip_;
  at::Tensor value_weight_;
  std::optional<Convolution> squeeze_, excite_;  // only for squeeze-and-excite
  std::optional<at::Tensor> w_;                  // only for siamese attention
  std::optional<at::Tensor> scale_, shift_;      // of the batch norm of the result
  std::optional<at::Tensor> coefficient_scale_;  // of the batch norm of the coefficients, [heads]
  std::optional<at::Tensor> scaled_identity_;    // the same, as a query transform for regular attention
};

}  // namespace saccade::models
