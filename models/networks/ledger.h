// Records the layers of a network while its table is walked: the tensors that it loads and the cost of each
// layer. Does not include LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/api/counts.h"
#include "models/weights/tensor_spec.h"

namespace saccade::models {

// A map's positions along each dimension: height and width, or frames or depth, height and width.
using Sides = std::vector<int64_t>;

struct ConvolutionShape {
  int64_t inputs = 0;
  int64_t outputs = 0;
  std::vector<int64_t> kernel = {1, 1};  // one entry per spatial dimension
  int64_t stride = 1;
  std::optional<int64_t> depth_stride = std::nullopt;  // along the first of three dimensions, if it differs
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = false;
  bool transposed = false;  // the weight is then [inputs, outputs / groups, ...]
};

// Layers are recorded in order of execution. `output` is the layer's output size along each dimension; empty
// for a layer whose cost is counted elsewhere or not at all.
class Ledger {
 public:
  // Records NAME.weight, and NAME.bias if the convolution has one.
  void Convolution(const std::string& name, const ConvolutionShape& shape,
                   const std::vector<int64_t>& output);
  // Records NAME.weight, bias, running_mean and running_var. Costs no multiply-adds, as it is folded.
  void BatchNorm(const std::string& name, int64_t channels);
  // Records NAME.weight and NAME.bias, applied to `rows` vectors.
  void Linear(const std::string& name, int64_t inputs, int64_t outputs, int64_t rows);
  // Records an efficient attention module: NAME.{query,key,value}.{weight,bias} as 1x1 convolutions in as
  // many dimensions as `output` has, and NAME.out.* if `reprojected`. A weights file may lack all of these
  // tensors together. The counts are the paper's: N (2 d dk + 2 d dv + 2 dk dv) multiply-adds and 4 (N (2 dk
  // + 2 dv + 2 d) + dk dv) bytes; without reprojection N (2 d dk + d dv + 2 dk dv) multiply-adds and 4 (N (2
  // dk + 2 dv + d) + dk dv) bytes.
  void EfficientAttention(const std::string& name, int64_t channels, int64_t key_channels,
                          int64_t value_channels, bool reprojected, const std::vector<int64_t>& output);
  // Records a non-local block with the same tensors, reprojected. The counts are those of the same paper: N
  // (2 d dk + 2 d dv) + N^2 (dk + dv) multiply-adds and 4 (N (2 dk + 2 dv + 2 d) + N^2) bytes.
  void NonLocal(const std::string& name, int64_t channels, int64_t key_channels, int64_t value_channels,
                const std::vector<int64_t>& output);
  // Records a module whose cost the caller has computed.
  void Add(const LayerCount& count, const std::vector<TensorSpec>& tensors);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  const Counts& counts() const { return counts_; }

 private:
  // Records the tensors of query, key, value and out. Returns their costs, and the maps' bytes.
  LayerCount Projections(const std::string& name, int64_t channels, int64_t key_channels,
                         int64_t value_channels, bool reprojected, const std::vector<int64_t>& output);

  std::vector<TensorSpec> tensors_;
  Counts counts_;
};

// Returns "56x80" for {56, 80}.
std::string ExtentText(const std::vector<int64_t>& extent);

}  // namespace saccade::models
