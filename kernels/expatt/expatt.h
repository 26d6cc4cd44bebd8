// Explicitly modelled attention (ExpAtt): a map that depends on positions alone, after "Explicitly Modeled
// Attention Maps for Image Classification".
//
// Tensors are [B, C, H, W], contiguous, channels-last or strided; float32, float64 or bfloat16 (float16 too
// on CUDA). Sums are kept in float32 (float64 for float64). Both calls allocate their result, block until it
// is ready on the CPU (and only enqueue on CUDA), may be made from any thread at once, and throw c10::Error
// naming the argument, what was expected and what came. They are also torch.ops.saccade.expatt and
// torch.ops.saccade.expatt_module. When an input requires grad, the differentiable reference runs instead of
// the kernel; it builds the whole map, so it is for training at the paper's sizes.
//
// On the CPU the tables that a map is made of are kept for the process, by kind, extent and sigma, so that
// calls of the same extent rebuild nothing: see expatt_tables.h, which bounds them. No map of positions by
// positions is ever built there. On CUDA every call evaluates the formulas from the device's own extents and
// sigma, without waiting for either; see expatt.cuh for what that costs.
//
// A sample's answer depends on that sample alone: not on the batch around it, its padding, or the threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace saccade::kernels {

// The paper's equation 5, P = Norm(G + 1) V: every row of G + 1 divided by its sum, one G for all heads.
//   kind   constant, linear, cosine, gaussian, exponential_euclidean or exponential_manhattan, the paper's
//          equations 7 to 12. Distances are in units of H and W, those of linear and cosine in units of the
//          picture's diagonal.
//   sigma  a tensor without dimensions on v's device, float32 or of v's dtype: the learned radius. Finite and
//          positive (on CUDA, where looking would mean waiting, anything else shows in the result); constant,
//          linear and cosine do not look at it.
//   valid  int64 [B, 2] on v's device: the height and width of each sample that take part, and that stand
//          for H and W in all formulas. What lies beyond is not read, and is zero in the result. Extents
//          outside the tensor are an error on the CPU and clamped on CUDA.
at::Tensor expatt(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                  const std::optional<at::Tensor>& valid = std::nullopt);

// The module as served: y = W_o P (W_v x + b_v) + b_o.
//   value_weight  [dv, C], or [dv, C, 1, 1] as a convolution stores it; value_bias [dv]
//   out_weight    [Cout, dv] likewise, or none: value_weight is then already W_o W_v; out_bias [Cout] or [dv]
// The map mixes positions and the weights mix channels, so they commute, and the rows of the map sum to one,
// so biases pass through it: W_o W_v is one matrix wherever that is cheaper than both, and the map is applied
// to the fewest channels there are. A batch norm that follows, y * scale + shift, is the caller's to fold:
// W_o times scale by rows and b_o * scale + shift. Weights are float32 or of x's dtype; folded float32
// weights spare work on every call.
at::Tensor expatt_module(const at::Tensor& x, const at::Tensor& value_weight,
                         const std::optional<at::Tensor>& value_bias,
                         const std::optional<at::Tensor>& out_weight,
                         const std::optional<at::Tensor>& out_bias, std::string_view kind,
                         double sigma = 0.75, const std::optional<at::Tensor>& valid = std::nullopt);

}  // namespace saccade::kernels
