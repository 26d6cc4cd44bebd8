// A convolution's weight in the layouts that oneDNN multiplies with.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>
#include <vector>

namespace saccade::models {

// Which layout is best depends on the input's shape, and a weight that lies in another one is reordered anew
// in every call: up to half of a forward pass. So it is packed once a layout, when a shape first asks for it.
// The shapes of a model are few (its buckets), their layouts fewer.
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

  // `weight` is float32 and dense in channels-last; it is let go once it is packed.
  PackedWeight(at::Tensor weight, Geometry geometry)
      : geometry_(std::move(geometry)), plain_(std::move(weight)) {}

  // For an input of this shape, [B, C, (D,) H, W].
  at::Tensor For(at::IntArrayRef input);

 private:
  struct Layout {
    std::string description;  // oneDNN's own, serialised
    at::Tensor weight;
  };
  at::Tensor Pack(const std::vector<int64_t>& shape);

  const Geometry geometry_;
  std::shared_mutex mutex_;
  at::Tensor plain_;  // until the first packing
  std::vector<Layout> layouts_;
  std::map<std::vector<int64_t>, at::Tensor> by_shape_;
};

}  // namespace saccade::models
