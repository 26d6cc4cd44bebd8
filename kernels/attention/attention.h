// Regular attention over the positions of a map: the result at every position is a mean of all values,
// weighted by the similarity of its query to their keys. It is the baseline for the efficient operators, and
// serves AttnNet, non-local blocks and DeepLabV2 with attention. The kernels never store the N x N matrix of
// similarities.
//
// Tensors are [B, C, *spatial] with one to three spatial dimensions, in any layout; float32, float64 or
// bfloat16 (on CUDA also float16). Sums are accumulated in float32 (float64 for float64). The calls allocate
// their result, block until it is ready on the CPU (on CUDA they only enqueue), are thread-safe, and throw
// c10::Error with the argument, what was expected and what was given. They are also
// torch.ops.saccade.attention, attention_1n and attention_module. If an input requires grad, the
// differentiable reference runs instead of the kernel.
//
// Channels are split into `heads` contiguous groups, each of which attends separately. `valid` is int64 [B,
// spatial dims] on the first argument's device: the valid extent of each sample. Positions outside it are
// never read and are zero in the result. On the CPU, extents outside the tensor and weights that are not
// finite are errors. On CUDA, extents are clamped and weights are not checked, because reading values would
// require synchronisation.
//
// On CUDA a softmax of 16-bit maps with at most 256 channels per head is computed by LibTorch's
// FlashAttention, unless torch.backends.cuda.enable_flash_sdp(False) turns it off; results differ in their
// last bits between the two.
//
// A sample's result depends on that sample alone: not on the rest of the batch, its padding, or the number of
// threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace saccade::kernels {

// O = V softmax(scale K^T Q), with the softmax over the keys of each query.
//   q, k  [B, Ck, *]
//   v     [B, C, *], like the result
//   pool  first takes the maximum of k and of v over windows of two positions along every spatial dimension,
//         with stride two ("Attn+Pool", after Wang et al. 2018); if an extent is odd, the last window is
//         smaller.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads = 1,
                     double scale = 1.0, bool pool = false,
                     const std::optional<at::Tensor>& valid = std::nullopt);

// O = (1/N) (V K^T) Q, where N is the number of valid positions ("Attn_1/N").
at::Tensor attention_1n(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads = 1,
                        const std::optional<at::Tensor>& valid = std::nullopt);

// The whole module: y = scale * (out_weight O) + shift (+ x if residual), where O is the attention of
// Q = query_weight x + query_bias, and K and V likewise. A missing weight is the identity, and so are missing
// out_weight, scale and shift.
//   kind          "softmax", "pool" (the input of keys and values is pooled, before the transforms) or "1n"
//   query_weight  [Ck, C], or as a 1x1 convolution stores it; key_weight has as many rows. If only one of the
//                 two is given, Ck = C.
//   value_weight  [Cv, C]; Cv = C if it is not given
//   x_bias        [rows of x_weight]; only with x_weight
//   out_weight    [Co, Cv]; Co = Cv if it is not given
//   scale, shift  [Co], from the batch norm (and the bias) that follows
//   logit_scale   like attention's scale; 1 for "1n"
//   residual      requires Co = C
// Weights are float32 or of x's dtype; float32 avoids a conversion in every call.
struct AttentionWeights {
  std::optional<at::Tensor> query_weight, key_weight, value_weight;
  std::optional<at::Tensor> query_bias, key_bias, value_bias;
  std::optional<at::Tensor> out_weight, scale, shift;
};
at::Tensor attention_module(const at::Tensor& x, const std::string& kind, const AttentionWeights& weights,
                            int64_t heads = 1, double logit_scale = 1.0, bool residual = true,
                            const std::optional<at::Tensor>& valid = std::nullopt);

}  // namespace saccade::kernels
