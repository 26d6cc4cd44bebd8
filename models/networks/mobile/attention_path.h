// The attention of an AttnModule, with weights: only the values are transformed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "models/networks/mobile/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable; calls may run at once on several threads.
class AttentionPath {
 public:
  // With `skip`, x is added to the result. Its batch norm is folded.
  AttentionPath(const MobileOptions& options, const TensorMap& tensors, const std::string& name, bool skip);

  // x is [B, C, H, W], channels-last, as is the result.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor Regular(const at::Tensor& x, const char* kind) const;
  at::Tensor Kronecker(const at::Tensor& x, const char* kind) const;

  std::string name_;
  MobileOptions options_;
  bool skip_;
  at::Tensor value_weight_;
  std::optional<at::Tensor> w_;                  // siamese attention's
  std::optional<at::Tensor> scale_, shift_;      // of the batch norm behind it
  std::optional<at::Tensor> coefficient_scale_;  // or of that before the softmax, a number a head
  std::optional<at::Tensor> scaled_identity_;  // which regular attention takes as a transform of the queries
};

}  // namespace saccade::models
