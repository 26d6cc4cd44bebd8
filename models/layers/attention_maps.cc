#include "models/layers/attention_maps.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/expatt/expatt.h"
#include "models/api/attention_probe.h"
#include "models/layers/attention_samples.h"

namespace saccade::models {
namespace {

constexpr int64_t kQueriesAtOnce = 4096;

// Sums over depth or time, if the maps have that side: [N, *spatial] to [N, height, width].
at::Tensor Flat(const at::Tensor& maps) {
  switch (maps.dim()) {
    case 4:
      return maps.sum(1);
    case 2:
      return maps.unsqueeze(1);
    default:
      return maps;
  }
}

// Hands the layer's maps to the probe of the calling thread, if there is one. `make` returns the first
// `count` of the `available` maps of a sample; each map holds `values` values.
void Probe(const std::string& layer, const at::Tensor& x, int64_t available, int64_t values,
           const std::function<std::vector<AttentionMap>(int64_t sample, int64_t count)>& make) {
  AttentionProbe* const probe = AttentionProbe::Current();
  if (probe == nullptr) return;
  for (int64_t sample = 0; sample < x.size(0); ++sample) {
    const int64_t count = probe->Wanted(layer, static_cast<size_t>(sample), available, values);
    if (count > 0) probe->Take(static_cast<size_t>(sample), {layer, make(sample, count), available});
  }
}

int64_t PositionsOf(const at::Tensor& x) { return x.numel() / (x.size(0) * x.size(1)); }

std::string Key(int64_t channel) { return "key " + std::to_string(channel); }

// The means of the columns, then of the rows, of [c, height, width]: [c, width + height].
at::Tensor Averages(const at::Tensor& x) { return at::cat({x.mean(1), x.mean(2)}, 1); }

// For one head: the weights of the averages (columns, then rows) in the mean position's result, [width +
// height].
at::Tensor MeanCoefficients(const KroneckerQueries& how, const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& scale, int64_t width) {
  const auto coefficients_of = [&](const at::Tensor& some) {
    return at::matmul(keys.transpose(0, 1), some).mul(scale).softmax(0);
  };
  if (how.kind == "kv") {
    // The coefficients of all positions at once would take too much memory.
    at::Tensor sum = at::zeros({keys.size(1)}, keys.options());
    for (const at::Tensor& some : queries.split(kQueriesAtOnce, 1)) sum.add_(coefficients_of(some).sum(1));
    return sum.div(queries.size(1));
  }
  const at::Tensor coefficients = coefficients_of(queries);
  // A position's result is the sum of its column's and its row's results; the maps show the mean of their
  // weights.
  const int64_t height = queries.size(1) - width;
  const at::Tensor columns = coefficients.narrow(1, 0, width).mean(1);
  return columns.add(coefficients.narrow(1, width, height).mean(1)).div(2);
}

}  // namespace

void ProbeEfficientAttention(const std::string& layer, const at::Tensor& x, const at::Tensor& key_weight,
                             const at::Tensor& key_bias, const std::string& normalization,
                             const std::optional<at::Tensor>& valid) {
  const auto make = [&](int64_t sample, int64_t count) {
    const at::Tensor seen = Seen(x, sample, valid);
    at::Tensor keys =
        Transformed(seen.flatten(1), key_weight.narrow(0, 0, count), key_bias.narrow(0, 0, count));
    keys =
        normalization == "softmax" ? keys.softmax(1) : keys.div(std::sqrt(static_cast<double>(keys.size(1))));
    std::vector<int64_t> shape = seen.sizes().vec();
    shape[0] = count;
    return AsMaps(Flat(keys.view(shape)), Key);
  };
  Probe(layer, x, key_weight.size(0), PositionsOf(x), make);
}

void ProbeKronecker(const std::string& layer, const at::Tensor& x, const KroneckerQueries& how,
                    const std::optional<at::Tensor>& valid) {
  const auto make = [&](int64_t sample, int64_t count) {
    const at::Tensor seen = Seen(x, sample, valid);
    const int64_t height = seen.size(1);
    const int64_t width = seen.size(2);
    const at::Tensor averages = Averages(seen);
    // The mean of linear transforms is the transform of the mean.
    const at::Tensor queries =
        Transformed(how.kind == "kv" ? seen.flatten(1) : averages, how.query_weight, how.query_bias)
            .unflatten(0, {how.heads, -1});
    const at::Tensor keys = Transformed(averages, how.key_weight).unflatten(0, {how.heads, -1});
    std::vector<AttentionMap> maps;
    for (int64_t head = 0; static_cast<int64_t>(maps.size()) < count; ++head) {
      const at::Tensor scale = how.coefficient_scale ? (*how.coefficient_scale)[head].to(at::kFloat)
                                                     : at::full({}, 1.0, queries.options());
      const at::Tensor weights = MeanCoefficients(how, queries[head], keys[head], scale, width);
      const at::Tensor columns = weights.narrow(0, 0, width).unsqueeze(0);
      const at::Tensor rows = weights.narrow(0, width, height).unsqueeze(1);
      // An average's weight is spread evenly over its positions.
      const at::Tensor both = columns.div(height) + rows.div(width);
      const auto add = [&](const at::Tensor& map, const char* what) {
        if (static_cast<int64_t>(maps.size()) == count) return;
        maps.push_back(AsMaps(map.unsqueeze(0), [&](int64_t) { return HeadName(head) + what; }).front());
      };
      add(both, "");
      add(columns, " columns");
      add(rows, " rows");
    }
    return maps;
  };
  Probe(layer, x, 3 * how.heads, PositionsOf(x), make);
}

void ProbeSiamese(const std::string& layer, const at::Tensor& x, const std::optional<at::Tensor>& w,
                  int64_t heads) {
  const auto make = [&](int64_t sample, int64_t count) {
    at::Tensor seen = Seen(x, sample, std::nullopt);
    if (w) seen = seen * w->to(at::kFloat).view({-1, 1, 1});
    return AsMaps(seen.unflatten(0, {heads, -1}).sum(1).narrow(0, 0, count), HeadName);
  };
  Probe(layer, x, heads, PositionsOf(x), make);
}

void ProbeExplicit(const std::string& layer, const at::Tensor& x, int64_t heads,
                   const std::function<at::Tensor(const at::Tensor& values, int64_t head)>& apply) {
  const auto make = [&](int64_t, int64_t count) {
    const int64_t height = x.size(2);
    const int64_t width = x.size(3);
    const auto options = x.options().dtype(at::kFloat).memory_format(std::nullopt);
    const at::Tensor middle = at::zeros({1, 1, height, width}, options);
    middle[0][0][height / 2][width / 2] = 1;
    std::vector<at::Tensor> looks;
    for (int64_t head = 0; head < count; ++head) looks.push_back(apply(middle, head)[0]);
    return AsMaps(at::cat(looks), [&](int64_t head) {
      return heads == 1 ? std::string("centre") : "centre head " + std::to_string(head);
    });
  };
  Probe(layer, x, heads, PositionsOf(x), make);
}

void ProbeExplicit(const std::string& layer, const at::Tensor& x, const std::string& map, double sigma) {
  ProbeExplicit(layer, x, 1, [&](const at::Tensor& values, int64_t) {
    return kernels::expatt(values, map, at::full({}, sigma, values.options()));
  });
}

}  // namespace saccade::models
