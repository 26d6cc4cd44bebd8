// A convolution's weight in the memory layouts that oneDNN computes with.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <shared_mutex>
#include <string>
#include <vector>

namespace saccade::models {

// The best layout depends on the input's shape, and oneDNN reorders a weight that has another one in every
// call, which costs up to half of a forward pass. So the weight is packed once for each layout, when a shape
// first needs it. The shapes of a model are few (its buckets), their layouts fewer.
//
// Thread-safe.
class PackedWeight {
 public:
  struct Geometry {
    std::vector<int64_t> padding;
    std::vector<int64_t> stride;
    std::vector<int64_t> dilation;
    int64_t groups = 1;
  };

  // Returns the plain weight, packed for inputs of this shape.
  using Packer = std::function<at::Tensor(const at::Tensor& plain, const std::vector<int64_t>& shape)>;

  // `weight` is float32 or bfloat16, and dense in channels-last; it is released after the first packing.
  PackedWeight(at::Tensor weight, Geometry geometry);
  // `weight` is int8, and kept, as a packed one cannot be unpacked.
  PackedWeight(at::Tensor weight, Packer packer);

  // Returns the weight for an input of this shape, [B, C, (D,) H, W]. May pack it first.
  at::Tensor For(at::IntArrayRef input);

 private:
  struct Layout {
    std::string description;  // oneDNN's own, serialised
    at::Tensor weight;
  };
  at::Tensor Pack(const std::vector<int64_t>& shape);

  const Packer packer_;
  const bool keeps_plain_;
  std::shared_mutex mutex_;
  at::Tensor plain_;  // the unpacked weight; undefined after the first packing if it is not kept
  std::vector<Layout> layouts_;
  std::map<std::vector<int64_t>, at::Tensor> by_shape_;
};

}  // namespace saccade::models
