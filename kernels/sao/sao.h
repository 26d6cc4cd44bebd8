// Siamese attention (SAO): linear in the number of positions, after "Siamese Attention Networks".
//
// Tensors are [B, C, *spatial] with one to three spatial dimensions, contiguous, channels-last or strided;
// float32, float64 or bfloat16 (float16 too on CUDA). Sums are kept in float32 (float64 for float64).
// Both calls allocate their result, block until it is ready on the CPU (and only enqueue on CUDA), may be
// made from any thread at once, and throw c10::Error naming the argument, what was expected and what came.
// They are also torch.ops.saccade.sao and torch.ops.saccade.sao_module. When an input requires grad, the
// differentiable reference runs instead of the kernel.
//
// Weights that are not finite are refused on the CPU; on CUDA, where looking would mean waiting, they show in
// the result.
//
// A sample's answer depends on that sample alone: not on the batch around it, its padding, or the threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace saccade::kernels {

// The paper's equation 6, O = mean(V) (w^T Q) + (1/N) V K^T w 1^T, for each of `heads` contiguous groups of
// channels. q, k and v have one shape, dtype and device.
//   w            [C], float32 or of q's dtype; none means all ones.
//   global_term  false drops the second term (the paper's ablation); k is then not read.
//   valid        int64 [B, spatial dims] on q's device: the extent of each sample that takes part. What lies
//                beyond is neither read nor counted in N, and is zero in the result. Extents outside the
//                tensor are an error on the CPU and clamped on CUDA, where looking would mean waiting.
at::Tensor sao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const std::optional<at::Tensor>& w = std::nullopt, int64_t heads = 1, bool global_term = true,
               const std::optional<at::Tensor>& valid = std::nullopt);

// The module as served: y = scale * SAO + shift (+ x if residual), with V = value_weight x, Q = K = x unless
// they have transforms of their own, and
// SAO's sums over positions not divided by N: the training-time batch norm that scale and shift are folded
// from takes the place of 1/N. V is never formed.
//   value_weight  [C, C], or [C, C, 1, 1] as a convolution stores it
//   scale, shift  [C]
//   query_weight, key_weight
//                 [C, C], or none where Q or K is x itself: Q = query_weight x. Neither is ever formed: with
//                 w, a head's share of the matrix is one more vector.
// Weights are float32 or of x's dtype; float32 spares a conversion on every call.
at::Tensor sao_module(const at::Tensor& x, const at::Tensor& value_weight, const std::optional<at::Tensor>& w,
                      const at::Tensor& scale, const at::Tensor& shift, int64_t heads = 4,
                      bool global_term = true, bool residual = true,
                      const std::optional<at::Tensor>& valid = std::nullopt,
                      const std::optional<at::Tensor>& query_weight = std::nullopt,
                      const std::optional<at::Tensor>& key_weight = std::nullopt);

}  // namespace saccade::kernels
