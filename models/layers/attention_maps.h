// Makes attention maps for the samples that ask for them, beside the forward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace saccade::models {

// Each function hands its maps to the calling thread's AttentionProbe, under the layer's name; without a
// probe it does nothing. x is [B, C, *spatial]; maps of volumes and clips are summed over depth or time.
// `valid` is as for the operators: maps cover only the valid part.

// The global maps "key 0", "key 1" and so on: the position weights of each key channel. With "softmax" each
// map sums to one; with "scaling" a map holds the factors of the values, which may have any sign.
void ProbeEfficientAttention(const std::string& layer, const at::Tensor& x, const at::Tensor& key_weight,
                             const at::Tensor& key_bias, const std::string& normalization,
                             const std::optional<at::Tensor>& valid);

// The weights that make Kronecker attention's queries and keys.
struct KroneckerQueries {
  std::string kind;  // "kv" or "qkv"
  std::optional<at::Tensor> query_weight = std::nullopt;
  std::optional<at::Tensor> query_bias = std::nullopt;
  std::optional<at::Tensor> key_weight = std::nullopt;
  // [heads], one factor per head.
  std::optional<at::Tensor> coefficient_scale = std::nullopt;
  int64_t heads = 1;
};
// Three maps per head, with the weights in the mean position's result: "head 0 columns" (one row of values)
// and "head 0 rows" (one column of values), which sum to one together, and "head 0", the same spread over all
// positions.
void ProbeKronecker(const std::string& layer, const at::Tensor& x, const KroneckerQueries& queries,
                    const std::optional<at::Tensor>& valid = std::nullopt);

// One map per head, "head 0" and so on: the score w^T x, by which a position's result takes the mean value.
// Scores may have any sign.
void ProbeSiamese(const std::string& layer, const at::Tensor& x, const std::optional<at::Tensor>& w,
                  int64_t heads);

// One map, "centre": the weight of the middle position in each position's result. It depends on positions
// alone.
void ProbeExplicit(const std::string& layer, const at::Tensor& x, const std::string& map, double sigma);
// The same for any number of maps, one for each head. `apply` applies the map of a head to values [1, 1, H,
// W]. If there are several, their names are "centre head 0" and so on.
void ProbeExplicit(const std::string& layer, const at::Tensor& x, int64_t heads,
                   const std::function<at::Tensor(const at::Tensor& values, int64_t head)>& apply);

}  // namespace saccade::models
