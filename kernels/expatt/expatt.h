// Explicitly modelled attention (ExpAtt): an attention map that depends on positions alone, after "Explicitly
// Modeled Attention Maps for Image Classification".
//
// Tensors are [B, C, H, W], contiguous, channels-last or strided; float32, float64 or bfloat16 (on CUDA also
// float16). Sums are accumulated in float32 (float64 for float64). Both calls allocate their result, block
// until it is ready on the CPU (on CUDA they only enqueue), are thread-safe, and throw c10::Error with the
// argument, what was expected and what was given. They are also torch.ops.saccade.expatt and
// torch.ops.saccade.expatt_module. If an input requires grad, the differentiable reference runs instead of
// the kernel; it builds the whole map, so it is meant for training at the paper's sizes.
//
// On the CPU a process-wide cache keeps the tables of a map by kind, extent and sigma, so that calls with the
// same extent rebuild nothing; expatt_tables.h bounds it. No map of positions by positions is ever built. On
// CUDA a call evaluates the formulas from extents and sigma in device memory, without synchronisation;
// expatt.cuh states the cost. For 16-bit maps of up to 3136 positions without `valid`, unless sigma is a
// tensor that the kind uses or the map has factors that are faster, the second call with the same kind,
// extent, sigma and type stores the whole map, and later ones read it, with the same result: up to 256 MB of
// maps are kept on a device (expatt_maps.h). A CUDA graph keeps the maps that it uses.
//
// A sample's result depends on that sample alone: not on the rest of the batch, its padding, or the number of
// threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace saccade::kernels {

// The paper's equation 5, P = Norm(G + 1) V: every row of G + 1 divided by its sum, with one G for all heads.
//   kind   constant, linear, cosine, gaussian, exponential_euclidean or exponential_manhattan, the paper's
//          equations 7 to 12. Distances are in units of H and W; for linear and cosine, in units of the
//          image's diagonal.
//   sigma  a tensor without dimensions on v's device, float32 or of v's dtype: the learned radius, finite and
//          positive; for gaussian, which squares it, not zero. CUDA does not check it, because that would
//          require synchronisation; other values propagate to the result. Ignored by constant, linear and
//          cosine.
//   valid  int64 [B, 2] on v's device: the valid height and width of each sample, which replace H and W in
//          all formulas. Positions outside are not read, and are zero in the result. Extents outside the
//          tensor are errors on the CPU and clamped on CUDA.
at::Tensor expatt(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                  const std::optional<at::Tensor>& valid = std::nullopt);

// The whole module: y = W_o P (W_v x + b_v) + b_o.
//   value_weight  [dv, C], or [dv, C, 1, 1] as a convolution stores it; value_bias [dv]
//   out_weight    [Cout, dv] likewise; if missing, value_weight is already W_o W_v; out_bias [Cout] or [dv]
// The map mixes positions and the weights mix channels, so they commute. The rows of the map sum to one, so
// biases pass through it. Therefore W_o W_v is folded into one matrix if that is cheaper than two, and the
// map is applied to as few channels as possible. The caller must fold a following batch norm, y * scale +
// shift: rows of W_o times scale, and b_o * scale + shift. Weights are float32 or of x's dtype; folded
// float32 weights avoid work in every call.
at::Tensor expatt_module(const at::Tensor& x, const at::Tensor& value_weight,
                         const std::optional<at::Tensor>& value_bias,
                         const std::optional<at::Tensor>& out_weight,
                         const std::optional<at::Tensor>& out_bias, std::string_view kind,
                         double sigma = 0.75, const std::optional<at::Tensor>& valid = std::nullopt);

}  // namespace saccade::kernels
