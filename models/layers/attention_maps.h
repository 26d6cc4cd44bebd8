// What attention looks at, as pictures: made for the samples that ask, beside the pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace saccade::models {

// Each hands its maps to the calling thread's AttentionProbe, under the layer's name; without one it does
// nothing. x is [B, C, *spatial]; maps of volumes and clips are summed over depth or time. `valid` as the
// operators have it: maps are of that part alone.

// The global maps: what each channel of the keys is gathered from, "key 0", "key 1" and so on. With "softmax"
// each sums to one; with "scaling" it is what is multiplied with the values, of any sign.
void ProbeEfficientAttention(const std::string& layer, const at::Tensor& x, const at::Tensor& key_weight,
                             const at::Tensor& key_bias, const std::string& normalization,
                             const std::optional<at::Tensor>& valid);

// What a Kronecker attention's queries are made of.
struct KroneckerQueries {
  std::string kind;  // "kv" or "qkv"
  std::optional<at::Tensor> query_weight = std::nullopt;
  std::optional<at::Tensor> query_bias = std::nullopt;
  std::optional<at::Tensor> key_weight = std::nullopt;
  // A number a head.
  std::optional<at::Tensor> coefficient_scale = std::nullopt;
  int64_t heads = 1;
};
// For each head three maps, of the weights with which the mean position is answered: "head 0 columns" (a
// row), "head 0 rows" (a column), which sum to one together, and "head 0", what that is for each position.
void ProbeKronecker(const std::string& layer, const at::Tensor& x, const KroneckerQueries& queries,
                    const std::optional<at::Tensor>& valid = std::nullopt);

// For each head the score w^T x with which a position asks for the mean value: "head 0" and so on. Of any
// sign.
void ProbeSiamese(const std::string& layer, const at::Tensor& x, const std::optional<at::Tensor>& w,
                  int64_t heads);

// One map, "centre": how much each position looks at the one in the middle. Of positions alone.
void ProbeExplicit(const std::string& layer, const at::Tensor& x, const std::string& map, double sigma);

}  // namespace saccade::models
