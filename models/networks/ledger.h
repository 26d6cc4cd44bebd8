// What a network is made of, written down layer by layer while its table is walked: the tensors it loads and
// what each layer costs. No LibTorch here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/counts.h"
#include "models/weights/tensor_spec.h"

namespace saccade::models {

struct ConvolutionShape {
  int64_t inputs = 0;
  int64_t outputs = 0;
  std::vector<int64_t> kernel = {1, 1};  // one entry a spatial dimension
  int64_t stride = 1;
  std::optional<int64_t> depth_stride = std::nullopt;  // along the first of three, where it is another
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = false;
  bool transposed = false;  // the weight is then [inputs, outputs / groups, ...]
};

// Everything is recorded in the order of execution. `output` is the layer's output in positions along each
// dimension; empty for a layer whose cost is counted elsewhere or not at all.
class Ledger {
 public:
  // NAME.weight, and NAME.bias if there is one.
  void Convolution(const std::string& name, const ConvolutionShape& shape,
                   const std::vector<int64_t>& output);
  // NAME.weight, bias, running_mean and running_var. Costs nothing: it is folded.
  void BatchNorm(const std::string& name, int64_t channels);
  // NAME.weight and NAME.bias, applied to `rows` vectors.
  void Linear(const std::string& name, int64_t inputs, int64_t outputs, int64_t rows);
  // An efficient attention module, NAME.{query,key,value}.{weight,bias} as 1x1 convolutions in as many
  // dimensions as `output` has, and NAME.out.* if `reprojected`. Optional as a whole. Counted as its paper
  // does: N (2 d dk + 2 d dv + 2 dk dv) multiply-adds, without the two reprojection terms if there is none
  // (N (2 d dk + d dv + 2 dk dv)), and 4 (N (2 dk + 2 dv + 2 d) + dk dv) bytes,
  // with d for 2 d there if there is none.
  void EfficientAttention(const std::string& name, int64_t channels, int64_t key_channels,
                          int64_t value_channels, bool reprojected, const std::vector<int64_t>& output);
  // For modules with a cost of their own.
  void Add(const LayerCount& count, const std::vector<TensorSpec>& tensors);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  const Counts& counts() const { return counts_; }

 private:
  std::vector<TensorSpec> tensors_;
  Counts counts_;
};

// "56x80".
std::string ExtentText(const std::vector<int64_t>& extent);

}  // namespace saccade::models
