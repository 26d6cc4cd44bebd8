// The inverted residual of MobileNetV2 and its kin on the CPU in one pass over the rows of a map: a 1x1
// expansion with ReLU6, a 3x3 filter of each channel with ReLU6 and a 1x1 projection. As three convolutions
// it would write the expanded maps, which are six times as large as its result, to memory and read them
// again.
//
// It is a part of networks and not an operator: it has no schema, and no code for GPUs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace saccade::kernels {

// Immutable and thread-safe. A picture's result depends on that picture alone, bit for bit: not on the rest
// of the batch, nor on the number of threads.
class InvertedResidual {
 public:
  // float32, with batch norms folded in.
  struct Weights {
    at::Tensor expand, expand_bias;    // [expanded, inputs(, 1, 1)], [expanded]; undefined if there is none
    at::Tensor filter, filter_bias;    // [filtered, 1, 3, 3], [filtered]
    at::Tensor project, project_bias;  // [outputs, projected(, 1, 1)], [outputs]
  };
  // All dense in channels-last and of the type that the object was made for.
  struct Maps {
    // [B, inputs, H, W]; undefined if nothing is expanded.
    at::Tensor x = {};
    // [B, filtered - expanded, H, W], filtered behind the expanded channels; undefined if there are none.
    at::Tensor kept = {};
    // [B, projected - filtered, H', W'], projected behind the filtered channels; undefined if there are none.
    at::Tensor beside = {};
    // [B, outputs, H', W'], added to the result; undefined for none.
    at::Tensor skipped = {};
  };

  // Whether this machine has code for maps of this type with so many inputs.
  static bool Supports(at::ScalarType type, int64_t inputs);

  // `stride` is that of the filter, 1 or 2. REQUIRES: Supports(type, inputs).
  InvertedResidual(const Weights& weights, int64_t stride, at::ScalarType type);
  ~InvertedResidual();
  InvertedResidual(InvertedResidual&& other) noexcept;
  InvertedResidual& operator=(InvertedResidual&& other) noexcept;

  // Returns [B, outputs, H', W'] in channels-last, where H' is (H - 1) / stride + 1. Throws c10::Error for
  // maps of other sizes or types, and if a side is 0.
  at::Tensor operator()(const Maps& maps) const;

 private:
  // The packed weights and the tensors that hold them.
  struct Packed;

  at::ScalarType type_;
  std::unique_ptr<const Packed> packed_;
};

}  // namespace saccade::kernels
