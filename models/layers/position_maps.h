// What single positions look at, of attention that answers each by its own weights: made for the samples that
// ask, of the positions that they ask for, beside the pass. A value for each pair of positions never exists.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace saccade::models {

// As attention_maps.h says; x is [B, C, H, W].

// What regular attention's similarities are made of.
struct DotProducts {
  std::string kind;  // "softmax", "pool" or "1n"
  std::optional<at::Tensor> query_weight = std::nullopt;
  std::optional<at::Tensor> query_bias = std::nullopt;
  std::optional<at::Tensor> key_weight = std::nullopt;
  std::optional<at::Tensor> key_bias = std::nullopt;
  int64_t heads = 1;
};
// For each position and head the weights of all positions in its answer: "position 0 head 0" and so on, which
// sum to one; of "pool" those of the windows. Of "1n" similarities by their number, of any sign.
void ProbeDotProducts(const std::string& layer, const at::Tensor& x, const DotProducts& how,
                      const std::optional<at::Tensor>& valid = std::nullopt);

// What global self-attention's weights are made of.
struct GlobalQueries {
  std::string content;  // "global", "axial" or "none"
  at::Tensor query_weight;
  std::optional<at::Tensor> key_weight = std::nullopt;
  at::Tensor column_embedding;
  at::Tensor row_embedding;
  int64_t heads = 1;
};
// For each position and head the weights of all positions in its answer: "position 0 head 0 content", if the
// content is global, and "... axial", which the position along columns and rows gives. The latter is made of
// "... column" and "... row", those of its own column and row, the other columns' by their own. The batch
// norm between the two is left out. Of any sign, but that axial ones of content axial sum to one.
void ProbeGlobal(const std::string& layer, const at::Tensor& x, const GlobalQueries& how);

}  // namespace saccade::models
