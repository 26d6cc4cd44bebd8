// The inverted residual on maps in 8 bits (at::kQUInt8, which carry their scale and zero point), on CPUs with
// AVX-512 VNNI. What lies between its three layers is in 8 bits too, in rows that stay in the cache.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "kernels/inverted_residual/inverted_residual_int8_problem.h"

namespace saccade::kernels {

// Immutable and thread-safe. A picture's result depends on that picture alone, bit for bit: not on the rest
// of the batch, nor on the number of threads. It is that of three int8 convolutions of oneDNN that pass bytes
// on to each other.
class Int8InvertedResidual {
 public:
  // The weights of output channel c are scale[c] * weight[c], with batch norms folded in.
  struct Layer {
    at::Tensor weight;  // int8, of the shape that InvertedResidual::Weights has; undefined if there is none
    at::Tensor scale;   // float64 [outputs]
    at::Tensor bias;    // float32 [outputs]
  };
  struct Weights {
    Layer expand, filter, project;
    ByteGrid filtered;   // of what the expansion makes
    ByteGrid projected;  // of what the filter makes
    ByteGrid out;
  };
  // Dense in channels-last, with the sizes of InvertedResidual::Maps, in 8 bits on any grid. What is kept
  // beside expanded channels is rounded to their grid.
  struct Maps {
    at::Tensor x = {};
    at::Tensor kept = {};
    at::Tensor beside = {};  // float32 or bfloat16
    at::Tensor skipped = {};
  };

  // Whether this machine has code for maps with so many inputs.
  static bool Supports(int64_t inputs);

  // `stride` is that of the filter, 1 or 2. Throws c10::Error for weights of other shapes or types. REQUIRES:
  // Supports() the inputs of the expansion.
  Int8InvertedResidual(const Weights& weights, int64_t stride);
  ~Int8InvertedResidual();
  Int8InvertedResidual(Int8InvertedResidual&& other) noexcept;
  Int8InvertedResidual& operator=(Int8InvertedResidual&& other) noexcept;

  // Returns [B, outputs, H', W'] in 8 bits and channels-last, where H' is (H - 1) / stride + 1. Throws
  // c10::Error for maps of other sizes or types, and if a side is 0.
  at::Tensor operator()(const Maps& maps) const;

 private:
  // The packed weights and the tensors that hold them.
  struct Packed;

  std::unique_ptr<const Packed> packed_;
};

}  // namespace saccade::kernels
