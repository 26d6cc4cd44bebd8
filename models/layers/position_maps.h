// Makes attention maps for chosen positions, of attention that has separate weights for each position. They
// are made for the samples that ask, beside the forward pass; a matrix of all pairs of positions is never
// formed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace saccade::models {

// The functions behave as those of attention_maps.h; x is [B, C, H, W].

// The weights that make regular attention's queries and keys.
struct DotProducts {
  std::string kind;  // "softmax", "pool" or "1n"
  std::optional<at::Tensor> query_weight = std::nullopt;
  std::optional<at::Tensor> query_bias = std::nullopt;
  std::optional<at::Tensor> key_weight = std::nullopt;
  std::optional<at::Tensor> key_bias = std::nullopt;
  int64_t heads = 1;
};
// One map for each position and head, "position 0 head 0" and so on: the weights of all positions in its
// result, which sum to one. For "pool" these are the weights of the pooling windows; for "1n" they are
// similarities divided by the number of positions, of any sign.
void ProbeDotProducts(const std::string& layer, const at::Tensor& x, const DotProducts& how,
                      const std::optional<at::Tensor>& valid = std::nullopt);

// The weights that make global self-attention's queries and keys, and its embeddings.
struct GlobalQueries {
  std::string content;  // "global", "axial" or "none"
  at::Tensor query_weight;
  std::optional<at::Tensor> query_bias = std::nullopt;
  std::optional<at::Tensor> key_weight = std::nullopt;
  std::optional<at::Tensor> key_bias = std::nullopt;
  std::optional<at::Tensor> column_embedding = std::nullopt;
  std::optional<at::Tensor> row_embedding = std::nullopt;
  int64_t heads = 1;
};
// For each position and head the weights of all positions in its result: "position 0 head 0 content", if
// `content` is "global", and, if there are both embeddings, "... axial", the product of the attention along
// columns and the attention along rows. "... column" and "... row" are the weights in the position's own
// column and row, each if there is its embedding. The batch norm
// between the two steps is left out. Weights may have any sign; "... axial" sums to one if `content` is
// "axial".
void ProbeGlobal(const std::string& layer, const at::Tensor& x, const GlobalQueries& how);

}  // namespace saccade::models
