// Efficient attention (EA): linear in the number of positions, after "Efficient Attention: Attention with
// Linear Complexities".
//
// Tensors are [B, C, *spatial] with one to three spatial dimensions (lines, pictures, volumes and clips), of
// any strides; float32, float64 or bfloat16 (float16 too on CUDA). Sums are kept in float32 (float64 for
// float64). Both calls allocate their result, block until it is ready on the CPU (and only enqueue on CUDA),
// may be made from any thread at once, and throw c10::Error naming the argument, what was expected and what
// came. They are also torch.ops.saccade.efficient_attention and torch.ops.saccade.efficient_attention_module.
// When an input requires grad, the differentiable reference runs instead of the kernel. Weights that are not
// finite are refused on the CPU; on CUDA, where looking would mean waiting, they show in the result.
//
// A sample's answer depends on that sample alone: not on the batch around it, its padding, or the threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace saccade::kernels {

// rho_q(Q) (rho_k(K)^T V), for each of `heads` contiguous groups of channels. q and k are [B, dk, *spatial],
// v is [B, dv, *spatial]; the result is as v.
//   normalization  "softmax": rho_q over the channels of each position and head, rho_k over all positions of
//                  each channel. "scaling": both divide by the square root of the number of positions.
//   valid          int64 [B, spatial dims] on q's device: the extent of each sample that takes part. What
//                  lies beyond is neither read nor counted, and is zero in the result. Extents outside the
//                  tensor are an error on the CPU and clamped on CUDA, where looking would mean waiting.
at::Tensor efficient_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               int64_t heads = 1, std::string_view normalization = "softmax",
                               const std::optional<at::Tensor>& valid = std::nullopt);

// The module as served: q, k and v are 1x1 convolutions of x, and y = out_weight * EA + out_bias (+ x if
// residual). Neither q, k nor v is ever formed: the keys' softmax gathers x itself, and everything behind it
// is one small matrix per sample.
//   key_weight, query_weight  [dk, C], or as a 1x1 convolution stores them; biases [dk]
//   value_weight              [dv, C], bias [dv]
//   out_weight                [C_out, dv], bias [C_out]; none: the result has dv channels
// A batch norm that follows the last convolution is folded into out_weight and out_bias by whoever loads
// them. The residual needs as many channels in as out. Weights are float32 or of x's dtype; float32 spares a
// conversion on every call.
at::Tensor efficient_attention_module(const at::Tensor& x, const at::Tensor& key_weight,
                                      const at::Tensor& query_weight, const at::Tensor& value_weight,
                                      const std::optional<at::Tensor>& key_bias,
                                      const std::optional<at::Tensor>& query_bias,
                                      const std::optional<at::Tensor>& value_bias,
                                      const std::optional<at::Tensor>& out_weight,
                                      const std::optional<at::Tensor>& out_bias, int64_t heads = 1,
                                      std::string_view normalization = "softmax", bool residual = true,
                                      const std::optional<at::Tensor>& valid = std::nullopt);

}  // namespace saccade::kernels
