// Kronecker attention (KAO), after "Kronecker Attention Networks": an image attends to its row and column
// averages instead of to all of its positions.
//
// Tensors are [B, C, H, W], contiguous, channels-last or strided; float32, float64 or bfloat16 (on CUDA also
// float16). Sums are accumulated in float32 (float64 for float64). All calls allocate their result, block
// until it is ready on the CPU (on CUDA they only enqueue), are thread-safe, and throw c10::Error with the
// argument, what was expected and what was given. They are also torch.ops.saccade.kao_kv, kao_qkv and
// kao_module. If an input requires grad, the differentiable reference runs instead of the kernel.
//
// Weights that are not finite are errors on the CPU; on CUDA, where checking would require synchronisation,
// they propagate to the result.
//
// A sample's result depends on that sample alone: not on the rest of the batch, its padding, or the number of
// threads.
//
// The coefficients' batch norm: the paper normalises the coefficient matrix E = K^T Q with batch norm during
// training and does not state the axis. Here each head's matrix is one channel, BatchNorm2d(heads) over [B,
// heads, H + W, queries]. At inference this is E * scale + shift with two numbers per head. The shift is the
// same for all coefficients of a softmax, so it cancels, and only the scale remains. `coefficient_scale` is
// weight / sqrt(running_var + eps) of that layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace saccade::kernels {

// The paper's equation 16 for each of `heads` contiguous groups of channels: out[:, n] = C_v softmax(s C_k^T
// q_n) with C = [column means, row means], W + H vectors, of k and of v.
//   q, k               [B, Ck, H, W]
//   v                  [B, C, H, W]; the result has its shape and q's memory format
//   coefficient_scale  s, [heads], float32 or of q's dtype; 1 if missing
//   valid              int64 [B, 2] on q's device: the valid rows and columns of each sample. Positions
//                      outside are neither read nor averaged, and are zero in the result. Extents outside the
//                      tensor are errors on the CPU; on CUDA they are clamped, because checking would require
//                      synchronisation.
at::Tensor kao_kv(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads = 1,
                  const std::optional<at::Tensor>& coefficient_scale = std::nullopt,
                  const std::optional<at::Tensor>& valid = std::nullopt);

// Equations 17 and 18: the averages attend to each other, [H~, L~] = C_v softmax(s C_k^T C_q), and the result
// is the outer sum, out[:, a, b] = L~[:, a] + H~[:, b]. (Equation 17 labels H~ with h columns and L~ with w;
// according to the shapes, H~ comes from the w column means and L~ from the h row means.)
at::Tensor kao_qkv(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads = 1,
                   const std::optional<at::Tensor>& coefficient_scale = std::nullopt,
                   const std::optional<at::Tensor>& valid = std::nullopt);

// The whole module: y = scale * KAO(Wq x + bq, Wk x, Wv x + bv) + shift (+ x if residual). Transforms are
// applied to the averages only, with which they commute; the transformed maps are never stored. A bias of the
// keys would be the same in all coefficients of a softmax and cancel, so there is no such argument.
//   kind                      "kv" or "qkv"
//   query_weight, key_weight  [Ck, C]; identity if missing; if only one is given, Ck = C
//   value_weight              [Cv, C]; identity if missing; a residual requires Cv = C
//   query_bias                [Ck]
//   value_bias, scale, shift  [Cv]; 0, 1 and 0 if missing
//   heads                     number of groups of Ck and of Cv
// Matrices may also be [.., C, 1, 1] as a convolution stores them. Weights are float32 or of x's dtype;
// float32 avoids a conversion in every call.
struct KaoWeights {
  std::optional<at::Tensor> query_weight = std::nullopt, key_weight = std::nullopt;
  std::optional<at::Tensor> value_weight = std::nullopt;
  std::optional<at::Tensor> query_bias = std::nullopt, value_bias = std::nullopt;
  std::optional<at::Tensor> coefficient_scale = std::nullopt;
  std::optional<at::Tensor> scale = std::nullopt, shift = std::nullopt;
};
at::Tensor kao_module(const at::Tensor& x, std::string_view kind, const KaoWeights& weights,
                      int64_t heads = 1, bool residual = true,
                      const std::optional<at::Tensor>& valid = std::nullopt);

}  // namespace saccade::kernels
