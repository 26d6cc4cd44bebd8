// Kronecker attention on CUDA: a plan of the attention core (device/attend.cuh), compiled by nvcc and, for
// the emulator, by g++.
//   1. averages of q, k and v over columns and rows, [B, W + H, C]
//   2. K = s (Wk C), V = Wv C and, with average queries, Q = Wq C + bq: products over W + H rows, in float32
//   3. map queries: K_h Wq_h, so that the map itself is the query, if that costs at most about twice the
//      transform; otherwise Wq x + bq of every position goes through the workspace. Unlike on the CPU, the
//      choice cannot depend on the valid extents, which the host does not know.
//   4. map queries: attention of all positions to W + H keys, which stores the result. Average queries:
//      attention among the averages, in float32, then a pass that stores the outer sum (+ x).
#pragma once

#include "kernels/device/attend.cuh"
#include "kernels/kao/kao_problem.h"
#include "kernels/kao/kao_product.cuh"

namespace saccade::kernels {

// The averages of one map.
struct KaoMeans {
  FeatureMap map;
  int64_t channels = 0;
  Extent extent;
  int64_t batch = 0;
  float* means = nullptr;   // [B, W + H, channels]
  float* scaled = nullptr;  // means times scale[head], or null
  const float* scale = nullptr;
  int64_t head_channels = 1;

  __host__ __device__ int64_t Averages() const { return extent.size[1] + extent.size[2]; }
  __device__ void Store(int64_t sample, int64_t average, int64_t channel, float mean) const {
    const int64_t at = (sample * Averages() + average) * channels + channel;
    means[at] = mean;
    if (scaled != nullptr) scaled[at] = mean * scale[channel / head_channels];
  }
};

// The plan: the problem's sizes, its workspace and the core's problems.
struct KaoCuda {
  static constexpr int kSpreadPositions = 1024;  // of one channel, per block
  static constexpr int kSpreadRows = 32;         // positions per block if channels are adjacent

  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised; null only to measure.
  KaoCuda(const KaoProblem& problem, float* workspace) : p(problem) {
    map_queries = p.kind == KaoKind::kMapQueries;
    positions = PositionsOf(p.extent);
    averages = KaoRows(p) + KaoColumns(p);
    head_keys = p.key_channels / p.heads;
    head_values = p.value_channels / p.heads;
    channels_adjacent = p.out.channel_stride == 1 && p.out.spatial_stride[2] != 1;
    folds = map_queries && p.query_weight != nullptr && p.query_bias == nullptr &&
            p.heads * p.query_map_channels <= 2 * p.key_channels;
    transforms_map = map_queries && !folds && (p.query_weight != nullptr || p.query_bias != nullptr);
    const auto take = [&](int64_t count) {
      float* const taken = workspace == nullptr ? nullptr : workspace + floats;
      floats += count;
      return taken;
    };
    counts = reinterpret_cast<int64_t*>(take(p.extent.valid == nullptr ? 0 : 2 * p.batch));
    const auto average = [&](const FeatureMap& map, int64_t channels) {
      for (int i = 0; i < source_count; ++i) {
        if (SameMap(sources[i].map, map) && sources[i].channels == channels) return sources[i].means;
      }
      KaoMeans& source = sources[source_count++];
      source = {map, channels, p.extent, p.batch, take(p.batch * averages * channels)};
      return source.means;
    };
    const auto vectors = [&](int64_t channels) { return take(p.batch * averages * channels); };
    key_means = keys = average(p.k, p.query_map_channels);
    value_means = values = average(p.v, p.value_map_channels);
    if (p.key_weight != nullptr) {
      keys = vectors(p.key_channels);
    } else if (p.coefficient_scale != nullptr) {
      keys = vectors(p.key_channels);
      sources[0].scaled = keys;
      sources[0].scale = static_cast<const float*>(p.coefficient_scale);
      sources[0].head_channels = head_keys;
    }
    if (p.value_weight != nullptr) values = vectors(p.value_channels);
    if (!map_queries) {
      query_means = queries = average(p.q, p.query_map_channels);
      if (p.query_weight != nullptr || p.query_bias != nullptr) queries = vectors(p.key_channels);
      attended = vectors(p.value_channels);
    } else if (folds) {
      folded = vectors(p.heads * p.query_map_channels);
    } else if (transforms_map) {
      queries = take(p.batch * positions * p.key_channels);
    }
    // A bias needs a product to be added in, so use the identity as weight.
    if (p.query_weight == nullptr && p.query_bias != nullptr)
      identity = take(p.key_channels * p.key_channels);
    if (p.value_bias != nullptr || p.shift != nullptr) shift = take(p.value_channels);
    attend = workspace == nullptr ? nullptr : workspace + floats;
  }

  int64_t FloatsOfWorkspace() const { return floats + AttendWorkspaceFloats(Apply()); }

  Extent AverageExtent() const { return RowExtent(averages, p.extent.valid == nullptr ? nullptr : counts); }

  Rows AverageRows(const float* data, int64_t channels, int64_t head_channels) const {
    return MatrixRows(data, channels, 1, head_channels, averages * channels);
  }

  // A product of step 2: from [.., channels] to [.., out_channels].
  KaoProduct Transform(const float* from, int64_t channels, const void* weight, float* to,
                       int64_t out_channels) const {
    KaoProduct product;
    product.rows = p.batch * averages;
    product.sample_rows = averages;
    product.depth = channels;
    product.outs = out_channels;
    product.from = from;
    product.from_stride = channels;
    product.weight = static_cast<const float*>(weight);
    product.weight_out_stride = channels;
    product.to = to;
    product.to_stride = out_channels;
    product.to_sample_stride = averages * out_channels;
    return product;
  }

  const float* QueryWeight() const {
    return p.query_weight != nullptr ? static_cast<const float*>(p.query_weight) : identity;
  }

  // Step 3, folded: K_h Wq_h, [B, heads, W + H, C].
  KaoProduct Fold() const {
    KaoProduct product = Transform(keys, head_keys, p.query_weight, folded, p.query_map_channels);
    product.heads = p.heads;
    product.from_stride = p.key_channels;
    product.from_head_stride = head_keys;
    product.weight_out_stride = 1;
    product.weight_depth_stride = p.query_map_channels;
    product.weight_head_stride = head_keys * p.query_map_channels;
    product.to_head_stride = averages * p.query_map_channels;
    product.to_sample_stride = p.heads * averages * p.query_map_channels;
    return product;
  }

  // Step 3, not folded: Wq x + bq, [B, N, key_channels].
  AttendProblem TransformMap() const {
    AttendProblem a;
    a.batch = p.batch;
    a.depth = p.query_map_channels;
    a.queries = p.extent;
    a.keys = RowExtent(p.key_channels);
    a.q = RowsOf(p.q, p.dtype, 0);
    a.k = MatrixRows(QueryWeight(), p.query_map_channels, 1);
    a.key_bias = static_cast<const float*>(p.query_bias);
    a.out = MatrixRows(queries, p.key_channels, 1, 0, positions * p.key_channels);
    a.out.row_stride[1] = KaoColumns(p) * p.key_channels;
    a.clear = false;
    return a;
  }

  // Step 4.
  AttendProblem Apply() const {
    AttendProblem a;
    a.batch = p.batch;
    a.heads = p.heads;
    a.depth = folds ? p.query_map_channels : head_keys;
    a.value_channels = head_values;
    a.queries = map_queries ? p.extent : AverageExtent();
    a.keys = AverageExtent();
    a.k = AverageRows(keys, p.key_channels, head_keys);
    a.v = AverageRows(values, p.value_channels, head_values);
    a.channel_scale = static_cast<const float*>(p.scale);
    a.channel_shift = shift;
    if (!map_queries) {
      a.q = AverageRows(queries, p.key_channels, head_keys);
      a.out = channels_adjacent
                  ? MatrixRows(attended, p.value_channels, 1, head_values, averages * p.value_channels)
                  : MatrixRows(attended, 1, averages, head_values * averages, p.value_channels * averages);
      a.clear = false;
      return a;
    }
    a.q = RowsOf(p.q, p.dtype, folds ? 0 : head_keys);
    if (folds) {
      a.k = MatrixRows(static_cast<const float*>(folded), p.query_map_channels, 1,
                       averages * p.query_map_channels, p.heads * averages * p.query_map_channels);
    }
    if (transforms_map) {
      a.q = MatrixRows(static_cast<const float*>(queries), p.key_channels, 1, head_keys,
                       positions * p.key_channels);
      a.q.row_stride[1] = KaoColumns(p) * p.key_channels;
    }
    a.out = RowsOf(p.out, p.dtype, head_values);
    if (p.residual) a.residual = RowsOf(p.q, p.dtype, head_values);
    return a;
  }

  KaoProblem p;
  bool map_queries, channels_adjacent, folds, transforms_map;
  int64_t positions, averages, head_keys, head_values;
  int64_t floats = 0;
  KaoMeans sources[3];  // the keys' source is first
  int source_count = 0;
  int64_t* counts;  // [B]: number of averages of each sample, with valid extents only
  const float *key_means, *value_means, *query_means = nullptr;
  float *keys, *values;       // [B, W + H, key_channels], [B, W + H, value_channels]
  float* queries = nullptr;   // like keys; for map queries [B, N, key_channels]
  float* folded = nullptr;    // [B, heads, W + H, C]
  float* attended = nullptr;  // [B, W + H, value_channels]; the last two dimensions are ordered as in the
                              // result
  float* identity = nullptr;  // [key_channels, key_channels]
  float* shift = nullptr;     // [value_channels]: sum of all terms added to a channel
  float* attend = nullptr;    // the core's own workspace
};

// Computes the number of averages of each sample, and the weights in the form of the attention core. The grid
// covers the largest of these arrays.
static __global__ void __launch_bounds__(kBlockThreads) KaoPrepareKernel(KaoCuda run) {
  const KaoProblem& p = run.p;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (p.extent.valid != nullptr && i < p.batch) {
    const DeviceBox box(p.extent, i);
    run.counts[i] = box.Positions() == 0 ? 0 : box.size[1] + box.size[2];
  }
  if (run.identity != nullptr && i < p.key_channels * p.key_channels) {
    run.identity[i] = i / p.key_channels == i % p.key_channels ? 1.0f : 0.0f;
  }
  if (run.shift != nullptr && i < p.value_channels) {
    // Coefficients sum to one, so the values' bias is added once; an outer sum adds two halves.
    const float scale = p.scale == nullptr ? 1.0f : static_cast<const float*>(p.scale)[i];
    const float bias = p.value_bias == nullptr ? 0.0f : static_cast<const float*>(p.value_bias)[i];
    const float term = p.shift == nullptr ? 0.0f : static_cast<const float*>(p.shift)[i];
    run.shift[i] = scale * bias + (run.map_queries ? term : term / 2);
  }
}

// Step 1 if columns are adjacent: one block per sample and channel, which reads the channel once. A warp
// handles every eighth row, four at a time, with 64 columns in its lanes.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) KaoColumnMeansKernel(KaoMeans run) {
  constexpr int kColumns = 2 * kWarp;
  constexpr int kRows = 4;
  SACCADE_SHARED(float, parts, kBlockWarps* kColumns);
  const int64_t sample = blockIdx.x / run.channels;
  const int64_t channel = blockIdx.x % run.channels;
  const DeviceBox box(run.extent, sample);
  const int rows = box.size[1];
  const int columns = box.size[2];
  if (rows == 0 || columns == 0) return;
  const T* const x =
      static_cast<const T*>(run.map.data) + sample * run.map.batch_stride + channel * run.map.channel_stride;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  // Each entry is written and read by the same lane.
  float* const row_sums = run.means + (sample * run.Averages() + columns) * run.channels + channel;
  for (int first = 0; first < columns; first += kColumns) {
    float down[2] = {0, 0};
    for (int r = warp; r < rows; r += kRows * kBlockWarps) {
      float values[kRows][2];
      SACCADE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const int row = r + i * kBlockWarps;
        SACCADE_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int column = first + half * kWarp + lane;
          values[i][half] =
              row < rows && column < columns ? ToFloat(x[row * run.map.spatial_stride[1] + column]) : 0.0f;
        }
      }
      SACCADE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const int row = r + i * kBlockWarps;
        if (row >= rows) break;
        down[0] += values[i][0];
        down[1] += values[i][1];
        float across = WarpSum(values[i][0] + values[i][1]);
        if (lane != 0) continue;
        if (first > 0) across += row_sums[row * run.channels];
        if (first + kColumns < columns) {
          row_sums[row * run.channels] = across;
        } else {
          run.Store(sample, columns + row, channel, across / static_cast<float>(columns));
        }
      }
    }
    parts[warp * kColumns + lane] = down[0];
    parts[warp * kColumns + kWarp + lane] = down[1];
    __syncthreads();
    const int column = first + static_cast<int>(threadIdx.x);
    if (static_cast<int>(threadIdx.x) < kColumns && column < columns) {
      float total = 0;
      for (int w = 0; w < kBlockWarps; ++w) total += parts[w * kColumns + threadIdx.x];
      run.Store(sample, column, channel, total / static_cast<float>(rows));
    }
    __syncthreads();
  }
}

// Step 1 otherwise: one warp per sample, average and 32 channels. Values that the columns' warps read from
// memory are in the L2 cache for the rows' warps.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) KaoChannelMeansKernel(KaoMeans run) {
  const int64_t chunks = (run.channels + kWarp - 1) / kWarp;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarp;
  const int64_t sample = task / (chunks * run.Averages());
  if (sample >= run.batch) return;
  const int64_t average = task / chunks % run.Averages();
  const int64_t channel = task % chunks * kWarp + threadIdx.x % kWarp;
  const DeviceBox box(run.extent, sample);
  const auto rows = static_cast<int>(box.size[1]);
  const auto columns = static_cast<int>(box.size[2]);
  if (rows == 0 || columns == 0 || average >= rows + columns || channel >= run.channels) return;
  const bool of_column = average < columns;
  const int count = of_column ? rows : columns;
  const int64_t step = run.map.spatial_stride[of_column ? 1 : 2];
  const T* const x =
      static_cast<const T*>(run.map.data) + sample * run.map.batch_stride + channel * run.map.channel_stride +
      (of_column ? average * run.map.spatial_stride[2] : (average - columns) * run.map.spatial_stride[1]);
  // Four independent sums: loads overlap, and the rounding error is smaller.
  float sums[4] = {0, 0, 0, 0};
  int i = 0;
  for (; i + 4 <= count; i += 4) {
    SACCADE_UNROLL
    for (int s = 0; s < 4; ++s) sums[s] += ToFloat(x[(i + s) * step]);
  }
  for (; i < count; ++i) sums[0] += ToFloat(x[i * step]);
  run.Store(sample, average, channel,
            ((sums[0] + sums[1]) + (sums[2] + sums[3])) / static_cast<float>(count));
}

// The coordinates of position n of a sample.
struct KaoPlace {
  __device__ KaoPlace(const DeviceBox& box, int64_t n) {
    const auto width = static_cast<uint32_t>(box.full[2]);
    row = static_cast<uint32_t>(n) / width;
    column = n - row * width;
    valid = row < box.size[1] && column < box.size[2];
    of_row = box.size[2] + row;
  }
  int64_t row, column;
  int64_t of_row;  // index of the row's average; a column's average has the index of the column
  bool valid;
};

template <typename T, typename Map>
__device__ auto* KaoElement(const Map& map, int64_t sample, int64_t channel, const KaoPlace& place) {
  return static_cast<T*>(map.data) + sample * map.batch_stride + channel * map.channel_stride +
         place.row * map.spatial_stride[1] + place.column * map.spatial_stride[2];
}

template <typename T>
__device__ void StoreOuterSum(const KaoProblem& p, int64_t sample, int64_t channel, const KaoPlace& place,
                              const float* attended, int64_t average_stride) {
  float y = 0;
  if (place.valid) {
    y = attended[place.of_row * average_stride] + attended[place.column * average_stride];
    if (p.residual) y += ToFloat(*KaoElement<const T>(p.q, sample, channel, place));
  }
  FromFloat(y, KaoElement<T>(p.out, sample, channel, place));
}

// Stores the outer sum, and zeros outside the valid extent. Launched with one block per sample, channel and
// kSpreadPositions positions.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) KaoSpreadKernel(KaoCuda run) {
  const KaoProblem& p = run.p;
  const int64_t chunks = (run.positions + KaoCuda::kSpreadPositions - 1) / KaoCuda::kSpreadPositions;
  const int64_t first = blockIdx.x % chunks * KaoCuda::kSpreadPositions;
  const int64_t channel = blockIdx.x / chunks % p.value_channels;
  const int64_t sample = blockIdx.x / chunks / p.value_channels;
  const DeviceBox box(p.extent, sample);
  const float* const attended = run.attended + (sample * p.value_channels + channel) * run.averages;
  SACCADE_UNROLL
  for (int i = 0; i < KaoCuda::kSpreadPositions / kBlockThreads; ++i) {
    const int64_t n = first + i * kBlockThreads + threadIdx.x;
    if (n >= run.positions) return;
    StoreOuterSum<T>(p, sample, channel, KaoPlace(box, n), attended, 1);
  }
}

// Same if channels are adjacent: one block per sample and kSpreadRows positions, one warp per position.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) KaoSpreadChannelsKernel(KaoCuda run) {
  const KaoProblem& p = run.p;
  const int64_t chunks = (run.positions + KaoCuda::kSpreadRows - 1) / KaoCuda::kSpreadRows;
  const int64_t first = blockIdx.x % chunks * KaoCuda::kSpreadRows;
  const int64_t sample = blockIdx.x / chunks;
  const DeviceBox box(p.extent, sample);
  const float* const attended = run.attended + sample * run.averages * p.value_channels;

  const int64_t last = first + KaoCuda::kSpreadRows;
  const int64_t end = last < run.positions ? last : run.positions;
  for (int64_t n = first + threadIdx.x / kWarp; n < end; n += kBlockWarps) {
    const KaoPlace place(box, n);
    SACCADE_UNROLL_BY(4)
    for (int64_t c = threadIdx.x % kWarp; c < p.value_channels; c += kWarp) {
      StoreOuterSum<T>(p, sample, c, place, attended + c, p.value_channels);
    }
  }
}

// Returns true if the grids can hold the problem.
inline bool KaoCudaFits(const KaoProblem& p) {
  const KaoCuda run(p, nullptr);
  const int64_t channels = p.value_channels > p.query_map_channels ? p.value_channels : p.query_map_channels;
  const int64_t map_blocks = Blocks(run.positions, KaoCuda::kSpreadRows) + run.averages;
  return map_blocks * channels <= kMaxBlocks / (p.batch < 1 ? 1 : p.batch) && AttendFits(run.Apply()) &&
         (!run.transforms_map || AttendFits(run.TransformMap()));
}

template <typename T, typename Launch>
void RunKaoMeans(const KaoMeans& source, const Launch& launch) {
  if (source.map.spatial_stride[2] == 1) {
    launch(KaoColumnMeansKernel<T>, source.batch * source.channels, kBlockThreads, source);
    return;
  }
  const int64_t warps = source.batch * source.Averages() * Blocks(source.channels, kWarp);
  launch(KaoChannelMeansKernel<T>, Blocks(warps, kBlockWarps), kBlockThreads, source);
}

// Runs step 2.
template <typename Launch>
void RunKaoTransforms(const KaoCuda& run, const Launch& launch) {
  const KaoProblem& p = run.p;
  KaoProducts products;
  if (p.key_weight != nullptr) {
    KaoProduct& product = products.Add(
        run.Transform(run.key_means, p.query_map_channels, p.key_weight, run.keys, p.key_channels));
    product.scale = static_cast<const float*>(p.coefficient_scale);
    product.scale_outs = run.head_keys;
  }
  if (p.value_weight != nullptr) {
    products.Add(
        run.Transform(run.value_means, p.value_map_channels, p.value_weight, run.values, p.value_channels));
  }
  if (!run.map_queries && run.queries != run.query_means) {
    KaoProduct& product = products.Add(
        run.Transform(run.query_means, p.query_map_channels, run.QueryWeight(), run.queries, p.key_channels));
    product.bias = static_cast<const float*>(p.query_bias);
  }
  RunKaoProducts(products, launch);
}

template <typename T, typename Launch>
void RunKaoCuda(const KaoProblem& p, float* workspace, const Launch& launch) {
  const KaoCuda run(p, workspace);
  int64_t prepared = 0;
  const auto prepare = [&](bool wanted, int64_t count) {
    if (wanted && count > prepared) prepared = count;
  };
  prepare(p.extent.valid != nullptr, p.batch);
  prepare(run.identity != nullptr, p.key_channels * p.key_channels);
  prepare(run.shift != nullptr, p.value_channels);
  launch(KaoPrepareKernel, Blocks(prepared, kBlockThreads), kBlockThreads, run);
  for (int i = 0; i < run.source_count; ++i) RunKaoMeans<T>(run.sources[i], launch);
  RunKaoTransforms(run, launch);
  if (run.map_queries) {
    if (run.folds) {
      KaoProducts fold;
      fold.Add(run.Fold());
      RunKaoProducts(fold, launch);
    }
    if (run.transforms_map) RunProduct<T>(run.TransformMap(), launch);
    RunAttend<T>(run.Apply(), run.attend, launch);
    return;
  }
  RunAttend<float>(run.Apply(), run.attend, launch);
  if (run.channels_adjacent) {
    launch(KaoSpreadChannelsKernel<T>, p.batch * Blocks(run.positions, KaoCuda::kSpreadRows), kBlockThreads,
           run);
  } else {
    launch(KaoSpreadKernel<T>, p.batch * p.value_channels * Blocks(run.positions, KaoCuda::kSpreadPositions),
           kBlockThreads, run);
  }
}

}  // namespace saccade::kernels
