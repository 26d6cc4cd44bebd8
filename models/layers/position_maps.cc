#include "models/layers/position_maps.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "models/api/attention_probe.h"
#include "models/layers/attention_samples.h"

namespace saccade::models {
namespace {

// A position on a layer's grid.
struct GridCell {
  int64_t row = 0;
  int64_t column = 0;
};

GridCell GridCellOf(const MapPosition& position, const at::Tensor& seen) {
  const auto along = [](float where, int64_t cells) {
    return std::clamp<int64_t>(static_cast<int64_t>(where * static_cast<float>(cells)), 0, cells - 1);
  };
  return {along(position.y, seen.size(1)), along(position.x, seen.size(2))};
}

// One of a head's maps for one position; `what` is the end of its name.
struct NamedMap {
  const char* what;
  at::Tensor values;  // [height, width]
};
// Makes the maps of a head of one sample, for the query at `cell`.
using HeadMaps = std::function<std::vector<NamedMap>(int64_t head, GridCell cell)>;

// Hands the layer's maps to the calling thread's probe, if there is one. `start` computes what a sample's
// maps share; the function that it returns makes `maps` maps for each position and head.
void Probe(const std::string& layer, const at::Tensor& x, const std::optional<at::Tensor>& valid,
           int64_t heads, int64_t maps, const std::function<HeadMaps(const at::Tensor& seen)>& start) {
  AttentionProbe* const probe = AttentionProbe::Current();
  if (probe == nullptr) return;
  const auto max = static_cast<size_t>(heads * maps);
  for (int64_t i = 0; i < x.size(0); ++i) {
    const auto sample = static_cast<size_t>(i);
    const int64_t values = x.size(2) * x.size(3);
    if (probe->Wanted(layer, sample, 1, values) == 0) continue;
    const std::vector<MapPosition>& positions = probe->PositionsOf(sample);
    const auto available = static_cast<int64_t>(positions.size() * max);
    const auto count = static_cast<size_t>(probe->Wanted(layer, sample, available, values));
    const at::Tensor seen = Seen(x, i, valid);
    const HeadMaps make = start(seen);
    Explanation explanation{layer, {}, available};
    for (size_t made = 0; explanation.maps.size() < count; ++made) {
      const size_t position = made / static_cast<size_t>(heads);
      const auto head = static_cast<int64_t>(made % static_cast<size_t>(heads));
      for (const NamedMap& map : make(head, GridCellOf(positions[position], seen))) {
        if (explanation.maps.size() == count) break;
        const auto name = [&](int64_t) {
          return "position " + std::to_string(position) + " " + HeadName(head) + map.what;
        };
        explanation.maps.push_back(AsMaps(map.values.unsqueeze(0), name).front());
      }
    }
    probe->Take(sample, std::move(explanation));
  }
}

// Returns [heads, C / heads, *].
at::Tensor SplitHeads(const at::Tensor& x, int64_t heads) { return x.unflatten(0, {heads, -1}); }

// Returns weight x (+ bias), x being `seen`, [C, H, W].
at::Tensor TransformedMap(const at::Tensor& seen, const std::optional<at::Tensor>& weight,
                          const std::optional<at::Tensor>& bias = std::nullopt) {
  return Transformed(seen.flatten(1), weight, bias).unflatten(1, {seen.size(1), seen.size(2)});
}

// The channels of one cell, [C].
at::Tensor At(const at::Tensor& seen, GridCell cell) {
  return seen.select(1, cell.row).select(1, cell.column);
}

// The embeddings of the distances from cell `from` to the `count` cells of an axis, [count, channels].
at::Tensor EmbeddingsFrom(const at::Tensor& embedding, int64_t from, int64_t count) {
  // The middle row belongs to distance zero.
  return embedding.to(at::kFloat).narrow(0, (embedding.size(0) - 1) / 2 - from, count);
}

// Along one axis, the weights of the cells for each of `queries`, [channels, count], all at the same cell of
// that axis: [cells, count]. `embeddings` are [cells, channels]; `keys` are [channels, cells, count], or
// undefined if only positions count.
at::Tensor AxisWeights(const at::Tensor& queries, const at::Tensor& embeddings, const at::Tensor& keys) {
  const at::Tensor scores = at::matmul(embeddings, queries);
  if (!keys.defined()) return scores;
  return scores.add(at::einsum("kin,kn->in", {keys, queries})).softmax(0);
}

}  // namespace

void ProbeDotProducts(const std::string& layer, const at::Tensor& x, const DotProducts& how,
                      const std::optional<at::Tensor>& valid) {
  const auto start = [&](const at::Tensor& seen) -> HeadMaps {
    at::Tensor read = seen;
    if (how.kind == "pool")
      read = at::max_pool2d(seen.unsqueeze(0), {2, 2}, {2, 2}, {0, 0}, {1, 1}, /*ceil_mode=*/true)[0];
    const at::Tensor keys = SplitHeads(TransformedMap(read, how.key_weight, how.key_bias), how.heads);
    return [&how, seen, keys](int64_t head, GridCell cell) -> std::vector<NamedMap> {
      const at::Tensor query =
          SplitHeads(Transformed(At(seen, cell).unsqueeze(1), how.query_weight, how.query_bias), how.heads);
      const at::Tensor similar = at::matmul(keys[head].flatten(1).transpose(0, 1), query[head]).squeeze(1);
      const at::Tensor weights = how.kind == "1n" ? similar.div(similar.size(0)) : similar.softmax(0);
      return {{"", weights.view({keys.size(2), keys.size(3)})}};
    };
  };
  Probe(layer, x, valid, how.heads, 1, start);
}

void ProbeGlobal(const std::string& layer, const at::Tensor& x, const GlobalQueries& how) {
  const bool global = how.content == "global";
  const auto start = [&](const at::Tensor& seen) -> HeadMaps {
    const at::Tensor keys = how.content == "none"
                                ? at::Tensor()
                                : SplitHeads(TransformedMap(seen, how.key_weight, how.key_bias), how.heads);
    const at::Tensor gathered = global ? keys.flatten(2).softmax(2).view(keys.sizes()) : at::Tensor();
    return [&how, seen, keys, gathered](int64_t head, GridCell cell) {
      const bool axial = how.content == "axial";
      // Each position of the row has its own weights along its column; they are multiplied by the row's
      // weights.
      const at::Tensor row_of_x = seen.select(1, cell.row);
      const at::Tensor queries =
          SplitHeads(Transformed(row_of_x, how.query_weight, how.query_bias), how.heads)[head];
      const at::Tensor query = queries.narrow(1, cell.column, 1);
      at::Tensor columns;
      if (how.column_embedding) {
        columns = AxisWeights(queries, EmbeddingsFrom(*how.column_embedding, cell.row, seen.size(1)),
                              axial ? keys[head] : at::Tensor());
      }
      at::Tensor row;
      if (how.row_embedding) {
        row = AxisWeights(query, EmbeddingsFrom(*how.row_embedding, cell.column, seen.size(2)),
                          axial ? keys[head].select(1, cell.row).unsqueeze(2) : at::Tensor());
      }
      std::vector<NamedMap> maps;
      if (gathered.defined())
        maps.push_back({" content", at::einsum("kxy,k->xy", {gathered[head], query.squeeze(1)})});
      if (columns.defined() && row.defined()) maps.push_back({" axial", columns * row.transpose(0, 1)});
      if (columns.defined()) maps.push_back({" column", columns.narrow(1, cell.column, 1)});
      if (row.defined()) maps.push_back({" row", row.transpose(0, 1)});
      return maps;
    };
  };
  const bool columns = how.column_embedding.has_value();
  const bool rows = how.row_embedding.has_value();
  const int64_t maps = (global ? 1 : 0) + (columns ? 1 : 0) + (rows ? 1 : 0) + (columns && rows ? 1 : 0);
  Probe(layer, x, std::nullopt, how.heads, maps, start);
}

}  // namespace saccade::models
