// Regular attention over the positions of a map: every position answers with a mean of all values, weighted
// by how similar its query is to their keys. What the efficient operators are compared with, and what
// AttnNet, non-local blocks and DeepLabV2 with attention are served with. The N x N matrix of similarities
// never exists.
//
// Tensors are [B, C, *spatial] with one to three spatial dimensions, in any layout; float32, float64 or
// bfloat16 (float16 too on CUDA). Sums are kept in float32 (float64 for float64). The calls allocate their
// result, block until it is ready on the CPU (and only enqueue on CUDA), may be made from any thread at once,
// and throw c10::Error naming the argument, what was expected and what came. They are also
// torch.ops.saccade.attention, attention_1n and attention_module. When an input requires grad, the
// differentiable reference runs instead of the kernel.
//
// Channels are split into `heads` contiguous groups, each attending by itself.
// `valid` is int64 [B, spatial dims] on the first argument's device: the extent of each sample that takes
// part. What lies beyond is never read and is zero in the result. Extents outside the tensor are an error on
// the CPU and clamped on CUDA, where looking would mean waiting; so are weights that are not finite an error
// on the CPU alone.
//
// A sample's answer depends on that sample alone: not on the batch around it, its padding, or the threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace saccade::kernels {

// O = V softmax(scale K^T Q), the softmax over the keys of each query.
//   q, k  [B, Ck, *]
//   v     [B, C, *], as the result
//   pool  takes the maximum of k and of v over windows of two positions along every spatial dimension first,
//         two apart ("Attn+Pool", after Wang et al. 2018); where an extent is odd the last window holds what
//         is left.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads = 1,
                     double scale = 1.0, bool pool = false,
                     const std::optional<at::Tensor>& valid = std::nullopt);

// O = (1/N) (V K^T) Q, with N the number of positions that take part ("Attn_1/N").
at::Tensor attention_1n(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads = 1,
                        const std::optional<at::Tensor>& valid = std::nullopt);

// The module as served: y = scale * (out_weight O) + shift (+ x if residual), where O attends with
// Q = query_weight x + query_bias and K and V likewise. A weight that is not given is the identity, and so
// are out_weight, scale and shift.
//   kind          "softmax", "pool" (which pools after the transforms) or "1n"
//   query_weight  [Ck, C] or as a 1x1 convolution stores it; key_weight of as many rows. Where only one of
//                 the two is given, Ck = C.
//   value_weight  [Cv, C]; Cv = C where it is not given
//   x_bias        [rows of x_weight]; only with x_weight
//   out_weight    [Co, Cv]; Co = Cv where it is not given
//   scale, shift  [Co], from the batch norm (and the bias) that follows
//   logit_scale   as attention's scale; 1 for "1n"
//   residual      needs Co = C
// Weights are float32 or of x's dtype; float32 spares a conversion on every call.
struct AttentionWeights {
  std::optional<at::Tensor> query_weight, key_weight, value_weight;
  std::optional<at::Tensor> query_bias, key_bias, value_bias;
  std::optional<at::Tensor> out_weight, scale, shift;
};
at::Tensor attention_module(const at::Tensor& x, const std::string& kind, const AttentionWeights& weights,
                            int64_t heads = 1, double logit_scale = 1.0, bool residual = true,
                            const std::optional<at::Tensor>& valid = std::nullopt);

}  // namespace saccade::kernels
