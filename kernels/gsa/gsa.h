// Global self-attention (GSA): content attention over the whole map plus axial attention by relative
// position, after "Global Self-Attention Networks for Image Recognition".
//
// Tensors are [B, C, H, W] of any strides; float32, float64 or bfloat16 (on CUDA also float16). Sums are
// accumulated in float32 (float64 for float64). Both calls allocate their result, block until it is ready on
// the CPU (on CUDA they only enqueue), are thread-safe, and throw c10::Error with the argument, what was
// expected and what was given. They are also torch.ops.saccade.gsa and torch.ops.saccade.gsa_module. If an
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

// The paper's equations 4 to 8, for each of `heads` contiguous groups of channels. q and k are [B, Ck, H, W],
// v and the result are [B, C, H, W].
//   content  "global": Q (softmax over all positions of K)^T V, with no softmax of the queries. "none": no
//            content attention (the paper's 'only axial positional attention'); k is not read and may be
//            missing. "axial": the alternative of the paper's table 2, in which the coefficients of the
//            column and the row attention are softmax(q (k_i + r_{i - own})) over the column or row, as in
//            stand-alone self-attention; requires both embeddings.
//   column_embedding, row_embedding  [2L - 1, Ck / heads], shared by the heads: row delta + L - 1 is the key
//            of the position that is i - own = delta further down the column (right in the row). L is at
//            least H for columns and W for rows. Columns come first, and their result is the values of the
//            rows. With only one embedding, only that attention is added (the paper's table 4); with neither,
//            only the content.
//   middle_scale, middle_shift  [C]: the folded batch norm between column and row attention. Both or neither.
//   valid    int64 [B, 2] on q's device: the valid extent of each sample. Positions outside are neither read
//            nor attended to, and are zero in the result. Extents outside the tensor are errors on the CPU;
//            on CUDA they are clamped, because checking would require synchronisation.
struct GsaAttention {
  int64_t heads = 1;
  std::optional<at::Tensor> column_embedding = std::nullopt, row_embedding = std::nullopt;
  std::optional<at::Tensor> middle_scale = std::nullopt, middle_shift = std::nullopt;
  std::string_view content = "global";  // not owned
};
at::Tensor gsa(const at::Tensor& q, const std::optional<at::Tensor>& k, const at::Tensor& v,
               const GsaAttention& attention, const std::optional<at::Tensor>& valid = std::nullopt);

// The whole module: q, k and v are 1x1 convolutions of x, and y = scale * GSA + shift, which is the folded
// batch norm that follows. There is no residual and no output projection.
//   query_weight, key_weight  [Ck, C], or as a 1x1 convolution stores them; biases [Ck]. A key's bias cancels
//                             in the softmax. key_weight may be missing if content is "none".
//   value_weight              [C_out, C], bias [C_out]
//   scale, shift              [C_out], both or neither
// Weights are float32 or of x's dtype; float32 avoids a conversion in every call.
struct GsaWeights {
  at::Tensor query_weight;
  std::optional<at::Tensor> key_weight;
  at::Tensor value_weight;
  std::optional<at::Tensor> query_bias = std::nullopt, key_bias = std::nullopt, value_bias = std::nullopt;
  std::optional<at::Tensor> scale = std::nullopt, shift = std::nullopt;
};
at::Tensor gsa_module(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                      const std::optional<at::Tensor>& valid = std::nullopt);

}  // namespace saccade::kernels
