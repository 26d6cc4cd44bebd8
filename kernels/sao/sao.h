// Siamese attention (SAO): linear in the number of positions, after "Siamese Attention Networks".
//
// Tensors are [B, C, *spatial] with one to three spatial dimensions, contiguous, channels-last or strided;
// float32, float64 or bfloat16 (on CUDA also float16). Sums are accumulated in float32 (float64 for float64).
// Both calls allocate their result, block until it is ready on the CPU (on CUDA they only enqueue), are
// thread-safe, and throw c10::Error with the argument, what was expected and what was given. They are also
// torch.ops.saccade.sao and torch.ops.saccade.sao_module. If an input requires grad, the differentiable
// reference runs instead of the kernel.
//
// Weights that are not finite are errors on the CPU; on CUDA, where checking would require synchronisation,
// they propagate to the result.
//
// A sample's result depends on that sample alone: not on the rest of the batch, its padding, or the number of
// threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace saccade::kernels {

// The paper's equation 6, O = mean(V) (w^T Q) + (1/N) V K^T w 1^T, for each of `heads` contiguous groups of
// channels. q, k and v have the same shape, dtype and device.
//   w            [C], float32 or of q's dtype; all ones if missing.
//   global_term  false omits the second term (the paper's ablation); k is then not read.
//   valid        int64 [B, spatial dims] on q's device: the valid extent of each sample. Positions outside it
//                are neither read nor counted in N, and are zero in the result. Extents outside the tensor
//                are errors on the CPU; on CUDA they are clamped, because checking would require
//                synchronisation.
at::Tensor sao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const std::optional<at::Tensor>& w = std::nullopt, int64_t heads = 1, bool global_term = true,
               const std::optional<at::Tensor>& valid = std::nullopt);

// The whole module: y = scale * SAO + shift (+ x if residual), with V = value_weight x, and Q = K = x unless
// they have their own transforms. SAO's sums over positions are not divided by N: the training-time batch
// norm, which is folded into scale and shift, replaces 1/N. V is never stored.
//   value_weight  [C, C], or [C, C, 1, 1] as a convolution stores it
//   scale, shift  [C]
//   query_weight, key_weight
//                 [C, C], or missing if Q or K is x itself: Q = query_weight x. Q and K are never stored: w
//                 reduces each head's part of the matrix to one vector.
// Weights are float32 or of x's dtype; float32 avoids a conversion in every call.
struct SaoWeights {
  at::Tensor value_weight;
  std::optional<at::Tensor> w;
  at::Tensor scale, shift;
  std::optional<at::Tensor> query_weight = std::nullopt, key_weight = std::nullopt;
};
at::Tensor sao_module(const at::Tensor& x, const SaoWeights& weights, int64_t heads = 4,
                      bool global_term = true, bool residual = true,
                      const std::optional<at::Tensor>& valid = std::nullopt);

}  // namespace saccade::kernels
