// A convolution for serving, with the batch norm folded in. On the CPU the weights are packed once and the
// activation or addition is fused; on a GPU it is cuDNN's, called through ATen, which fuses a ReLU where a
// trial on the device is in favour of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/activation.h"
#include "models/layers/batch_norm.h"
#include "models/layers/calibration.h"
#include "models/layers/fused_trial.h"
#include "models/layers/int8_convolution.h"
#include "models/layers/packed_weight.h"
#include "models/layers/workspace_choice.h"

namespace saccade::models {

struct ConvolutionOptions {
  int64_t stride = 1;
  // Stride along the first side of clips and volumes, if it differs; pictures have no such side.
  std::optional<int64_t> depth_stride = std::nullopt;
  int64_t groups = 1;
  int64_t dilation = 1;
  // By default dilation * (k / 2), which preserves the size at stride 1.
  std::optional<int64_t> padding = std::nullopt;
  Activation activation = Activation::kNone;
  // Whether only convolutions, sums and poolings read the result: then it stays in 8 bits if this layer
  // computes in 8 bits.
  bool stays_int8 = false;
  Target target = {};
  // The grids, if the weight is in 8 bits; `weight` is then int8, and `weight_scale` has its scales, float32
  // [outputs].
  std::optional<Int8Grids> grids = std::nullopt;
  at::Tensor weight_scale = {};
  // The weight's name in the file; empty if it is not there under any name (a weight joined from several).
  std::string file_name = {};
};

// Returns `options` for the weight NAME.weight of `tensors`: for their target, and with the grids if they
// have some.
ConvolutionOptions Placed(const TensorMap& tensors, const std::string& name, ConvolutionOptions options);

// Thread-safe, but for calibration. A picture's result does not depend on the others in x, bit for bit.
// (oneDNN's convolutions guarantee that; ATen's matrix products do not, which is why a classifier is a
// convolution too.)
class Convolution {
 public:
  // `weight` is [outputs, inputs / groups, k, k], or with three k for volumes; `affine` is applied to the
  // result.
  Convolution(const at::Tensor& weight, const Affine& affine, const ConvolutionOptions& options);

  // x is [B, inputs, (D,) H, W] of the target's type or in 8 bits, preferably channels-last.
  at::Tensor operator()(const at::Tensor& x) const;
  // Returns activation(convolution + other); `other` has the result's shape.
  at::Tensor WithSum(const at::Tensor& x, const at::Tensor& other) const;
  // Like WithSum(), but may write the result to the memory of `other`, and does so on the CPU. REQUIRES:
  // `other` is not used elsewhere, and is dense in channels-last.
  at::Tensor AddedTo(at::Tensor other, const at::Tensor& x) const;

 private:
  // What cuDNN's fused functions have to be faster than: each is tried once, with the first map that the
  // layer gets, and then used or not for all maps.
  struct Fused {
    Precision precision;
    FusedChoice alone;
    FusedChoice with_sum;
  };

  at::Tensor Plain(const at::Tensor& x) const;
  // The following compute activation(convolution + other) without packed weights; `other` may be undefined.
  at::Tensor Unpacked(const at::Tensor& x, const at::Tensor& other) const;
  at::Tensor InSteps(const at::Tensor& x, const at::Tensor& other) const;
  at::Tensor InOneStep(const at::Tensor& x, const at::Tensor& other) const;
  // Returns whether InOneStep() is used. Tries it in the first call.
  bool IsFused(const at::Tensor& x, const at::Tensor& other) const;
  // The following compute with the target's type.
  at::Tensor Activated(const at::Tensor& x) const;
  at::Tensor Sum(const at::Tensor& x, const at::Tensor& other) const;
  at::Tensor SumInPlace(at::Tensor other, const at::Tensor& x) const;
  // The convolution in 8 bits if the layer computes with it, or null.
  const Int8Convolution* Int8() const;
  at::Tensor Observed(const at::Tensor& x, at::Tensor y) const;

  Activation activation_;
  at::Tensor bias_;
  PackedWeight::Geometry geometry_;
  std::shared_ptr<PackedWeight> packed_;
  at::Tensor weight_;  // undefined if packed
  at::ScalarType type_;
  std::shared_ptr<WorkspaceChoice> workspace_;  // null unless the layer is on a GPU and computes in float32
  std::shared_ptr<Fused> fused_;  // null unless the layer is on a GPU, has a ReLU and is not in float32
  std::shared_ptr<const Int8Convolution> int8_;
  // Null unless the network is being quantized.
  std::shared_ptr<CalibratedLayer> calibrated_;
  const Calibration* calibration_ = nullptr;
};

// The following functions load for the target of `tensors`.

// Makes a convolution without a batch norm from NAME.weight and NAME.bias; a missing bias is zero.
Convolution BiasedConvolution(const TensorMap& tensors, const std::string& name,
                              const ConvolutionOptions& options);

// Makes a linear layer over maps of one position from NAME.weight, [outputs, inputs], and NAME.bias. It is a
// convolution so that its results do not depend on the batch.
Convolution LinearConvolution(const TensorMap& tensors, const std::string& name);

// Makes a convolution from CONVOLUTION.weight and the batch norm in NORM.weight and so on.
Convolution NormedConvolution(const TensorMap& tensors, const std::string& convolution,
                              const std::string& norm, const ConvolutionOptions& options,
                              double epsilon = kBatchNormEpsilon);

}  // namespace saccade::models
