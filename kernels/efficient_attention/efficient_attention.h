// Efficient attention (EA): linear in the number of positions, after "Efficient Attention: Attention with
// Linear Complexities".
//
// Tensors are [B, C, *spatial] with one to three spatial dimensions (lines, images, volumes and clips), of
// any strides; float32, float64 or bfloat16 (on CUDA also float16). Sums are accumulated in float32 (float64
// for float64). Both calls allocate their result, block until it is ready on the CPU (on CUDA they only
// enqueue), are thread-safe, and throw c10::Error with the argument, what was expected and what was given.
// They are also torch.ops.saccade.efficient_attention and torch.ops.saccade.efficient_attention_module. If an
// input requires grad, the differentiable reference runs instead of the kernel. Weights that are not finite
// are errors on the CPU; on CUDA, where checking would require synchronisation, they propagate to the result.
//
// A sample's result depends on that sample alone: not on the rest of the batch, its padding, or the number of
// threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace saccade::kernels {

// rho_q(Q) (rho_k(K)^T V), for each of `heads` contiguous groups of channels. q and k are [B, dk, *spatial],
// v and the result are [B, dv, *spatial].
//   normalization  "softmax": rho_q over the channels of each position and head, rho_k over all positions of
//                  each channel. "scaling": both divide by the square root of the number of positions.
//   valid          int64 [B, spatial dims] on q's device: the valid extent of each sample. Positions outside
//                  it are neither read nor counted, and are zero in the result. Extents outside the tensor
//                  are errors on the CPU; on CUDA they are clamped, because checking would require
//                  synchronisation.
at::Tensor efficient_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               int64_t heads = 1, std::string_view normalization = "softmax",
                               const std::optional<at::Tensor>& valid = std::nullopt);

// The whole module: q, k and v are 1x1 convolutions of x, and y = out_weight * EA + out_bias (+ x if
// residual). The keys' softmax sums x itself, and everything after it is folded into one small matrix per
// sample, so q, k and v are never stored as whole maps.
//   key_weight, query_weight  [dk, C], or as a 1x1 convolution stores them; biases [dk]
//   value_weight              [dv, C], bias [dv]
//   out_weight                [C_out, dv], bias [C_out]; if missing, the result has dv channels
// A batch norm after the last convolution must be folded into out_weight and out_bias by the caller. The
// residual requires that the result has as many channels as x. Weights are float32 or of x's dtype; float32
// avoids a conversion in every call.
struct EaWeights {
  at::Tensor key_weight, query_weight, value_weight;
  std::optional<at::Tensor> key_bias, query_bias, value_bias;
  std::optional<at::Tensor> out_weight, out_bias;
};
at::Tensor efficient_attention_module(const at::Tensor& x, const EaWeights& weights, int64_t heads = 1,
                                      std::string_view normalization = "softmax", bool residual = true,
                                      const std::optional<at::Tensor>& valid = std::nullopt);

}  // namespace saccade::kernels
