// Explicitly modelled attention on CUDA, on raw pointers, compiled by nvcc and, for the emulator, by g++.
//   tables   G by distance, from sigma and the extents in device memory, which the host does not know
//   mix      a 1x1 convolution before the map and one after it, if the problem has them
//   then, by kind:
//   mean     constant: one block per sample and channel
//   direct   the product with the whole map, whose entries are looked up by distance and never stored
//            (expatt_direct.cuh), or, where expatt_map.cuh stored them, are read: 2 N^2 C operations
//   totals, columns, rows
//            gaussian and exponential_manhattan, for samples of many positions: the sum of each channel, a
//            product with Gx, and one with Gy that adds the total and divides: 2 N (h + w) C operations
// This works for every extent and radius without synchronisation. The price is that every call without a
// stored map computes the tables (at most H W values per sample or block), and that the direct product is
// quadratic. Sums are float32, split into parts. No atomics: the order of every sum depends on
// positions and channels alone.
#pragma once

#include "kernels/common/device.h"
#include "kernels/device/box.cuh"
#include "kernels/device/launch.cuh"
#include "kernels/expatt/expatt_block.cuh"
#include "kernels/expatt/expatt_direct.cuh"
#include "kernels/expatt/expatt_problem.h"
#include "kernels/expatt/expatt_weights.cuh"

namespace saccade::kernels {

// The problem, its sizes and its workspace; passed to every kernel.
struct ExpattCuda : ExpattBlockSize {
  // `workspace` has FloatsOfWorkspace() floats, which may be uninitialised; null only to measure.
  ExpattCuda(const ExpattProblem& problem, float* workspace)
      : p(problem),
        height(static_cast<int>(problem.extent.size[1])),
        width(static_cast<int>(problem.extent.size[2])),
        plane(problem.extent.size[1] * problem.extent.size[2]),
        max_direct(ExpattDirect::MaxPositions(problem.kind, problem.dtype)),
        factors(IsSeparable(problem.kind) && plane > max_direct),
        direct(problem.kind != ExpattKind::kConstant && (!factors || problem.extent.valid != nullptr)),
        source(problem.map != nullptr ? ExpattSource::kStoredMap
               : IsSeparable(problem.kind) || plane <= ExpattDirect::kMaxSharedTable ? ExpattSource::kOwnTable
                                                                                     : ExpattSource::kTable) {
    const int64_t maps = p.batch * p.map_channels * plane;
    const bool in_workspace = direct && source == ExpattSource::kTable;
    table_floats = factors ? 2 * (height + width) : in_workspace ? plane : 0;
    const auto take = [&](int64_t floats) {
      float* const begin = workspace == nullptr ? nullptr : workspace + workspace_floats;
      workspace_floats += floats;
      return begin;
    };
    tables = take(table_floats * Tables());
    totals = take(factors ? p.batch * p.map_channels : 0);
    turned = take(factors ? maps : 0);
    mixed = take(p.before != nullptr ? maps : 0);
    mapped = take(p.after != nullptr ? maps : 0);
  }

  int64_t FloatsOfWorkspace() const { return workspace_floats; }
  // Number of tables: samples share one if they all have the same extent.
  int64_t Tables() const { return p.extent.valid == nullptr ? 1 : p.batch; }

  // Returns a float32 map in the workspace, with positions as in the full extent.
  BasicFeatureMap<void> MapAt(float* data) const {
    return {data, p.map_channels * plane, plane, {0, width, 1}};
  }

  ExpattProblem p;
  int height, width;
  int64_t plane;
  int64_t max_direct;
  // Whether some samples may be too large for the direct product, and whether some may not be. With padding,
  // both kernels are launched, and a sample's valid extent decides which of them does nothing.
  bool factors, direct;
  ExpattSource source;  // of the direct product
  int64_t table_floats;
  // [Tables(), table_floats]. Factors: Gy by distance [H], Gx [W], their row sums [H] and [W]; otherwise G +
  // 1 by distance [H, W], rounded as the maps, or nothing.
  float* tables;
  float* totals;  // [B, map channels]
  float* turned;  // [B, map channels, H, W], after Gx
  float* mixed;   // same shape, before the map
  float* mapped;  // same shape, after the map
  int64_t workspace_floats = 0;
};

// Arguments of one launch.
struct ExpattStep {
  ExpattCuda run;
  FeatureMap from;
  OutputMap to;
  int64_t from_channels;
  int64_t to_channels;
  const float* weights;  // of mix
  const float* bias;     // or null
  int64_t row_blocks;    // blocks of the product, per sample
  int64_t column_blocks;
};

// The block's sample and its part of the product.
struct ExpattBlock {
  __device__ explicit ExpattBlock(const ExpattStep& step) {
    const auto block = static_cast<int64_t>(blockIdx.x);
    sample = block / (step.row_blocks * step.column_blocks);
    row = static_cast<int>(block / step.column_blocks % step.row_blocks);
    column = static_cast<int>(block % step.column_blocks);
  }
  int64_t sample;
  int row, column;
};

// Launched with one thread per table entry. Entries outside the sample's extent do not reach a result.
template <typename T>
__global__ void __launch_bounds__(ExpattCuda::kThreads) ExpattTablesKernel(ExpattStep step) {
  const ExpattCuda& run = step.run;
  const int64_t blocks = (run.table_floats + ExpattCuda::kThreads - 1) / ExpattCuda::kThreads;
  const int64_t sample = blockIdx.x / blocks;
  const int64_t entry = blockIdx.x % blocks * ExpattCuda::kThreads + threadIdx.x;
  if (entry >= run.table_floats) return;
  const DeviceBox box(run.p.extent, sample);
  const float sigma = ExpattSigma(run.p);
  float* to = run.tables + sample * run.table_floats + entry;
  if (!run.factors) {
    const int y = static_cast<int>(entry / run.width);
    const int x = static_cast<int>(entry % run.width);
    *to = ExpattRounded<T>(1 + ExpattWeight(run.p.kind, y, x, box.size[1], box.size[2], sigma));
    return;
  }
  const int line = run.height + run.width;
  const int within = static_cast<int>(entry % line);
  const bool rows = within < run.height;
  const int size = rows ? box.size[1] : box.size[2];
  const int i = rows ? within : within - run.height;
  if (entry < line) {
    *to = ExpattLineWeight(run.p.kind, i, size, sigma);
    return;
  }
  float sum = 0;
  for (int j = 0; j < size; ++j) sum += ExpattLineWeight(run.p.kind, ExpattDistance(i, j), size, sigma);
  *to = sum;
}

__device__ inline const float* ExpattTableOf(const ExpattCuda& run, int64_t sample) {
  return run.tables + (run.p.extent.valid == nullptr ? 0 : sample) * run.table_floats;
}

// Returns the sum of one channel's valid values.
template <typename In>
__device__ float ExpattChannelSum(const FeatureMap& map, const DeviceBox& box, int64_t sample,
                                  int64_t channel) {
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < box.Positions(); i += ExpattCuda::kThreads) {
    sum += ExpattReadAt<In>(map, sample, channel, i / box.size[2], i % box.size[2]);
  }
  return ExpattBlockSum(sum);
}

// Launched with one block per sample and channel.
template <typename In>
__global__ void __launch_bounds__(ExpattCuda::kThreads) ExpattTotalsKernel(ExpattStep step) {
  const int64_t sample = blockIdx.x / step.from_channels;
  const int64_t channel = blockIdx.x % step.from_channels;
  const DeviceBox box(step.run.p.extent, sample);
  if (box.Positions() <= step.run.max_direct) return;
  const float sum = ExpattChannelSum<In>(step.from, box, sample, channel);
  if (threadIdx.x == 0) step.run.totals[blockIdx.x] = sum;
}

// Launched with one block per sample and channel.
template <typename In, typename Out>
__global__ void __launch_bounds__(ExpattCuda::kThreads) ExpattMeanKernel(ExpattStep step) {
  const ExpattCuda& run = step.run;
  const int64_t sample = blockIdx.x / step.from_channels;
  const int64_t channel = blockIdx.x % step.from_channels;
  const DeviceBox box(run.p.extent, sample);
  const float sum = ExpattChannelSum<In>(step.from, box, sample, channel);
  const float mean =
      sum / static_cast<float>(box.Positions()) + (step.bias == nullptr ? 0 : step.bias[channel]);
  for (int64_t i = threadIdx.x; i < run.plane; i += ExpattCuda::kThreads) {
    const int y = static_cast<int>(i / run.width);
    const int x = static_cast<int>(i % run.width);
    ExpattWriteAt<Out>(step.to, sample, channel, y, x, y < box.size[1] && x < box.size[2] ? mean : 0.0f);
  }
}

// Rows of the product are pairs of channel and image row; columns are image columns.
template <typename In>
__global__ void __launch_bounds__(ExpattCuda::kThreads) ExpattColumnsKernel(ExpattStep step) {
  const ExpattCuda& run = step.run;
  const ExpattBlock block(step);
  const DeviceBox box(run.p.extent, block.sample);
  if (box.Positions() <= run.max_direct) return;
  const int height = box.size[1];
  const int width = box.size[2];
  const float* weights = ExpattTableOf(run, block.sample) + run.height;
  float* to = run.turned + block.sample * step.from_channels * run.plane;
  ExpattBlockProduct(
      block.row, block.column, static_cast<int>(step.from_channels) * height, width, width,
      [&](int row, int x) {
        return ExpattReadAt<In>(step.from, block.sample, row / height, row % height, x);
      },
      [&](int x, int column) { return weights[ExpattDistance(x, column)]; },
      [&](int row, int column, float sum, float) {
        to[row / height * run.plane + row % height * run.width + column] = sum;
      });
}

// Rows of the product are image rows; columns are pairs of channel and image column. Writes zeros in the
// padding.
template <typename Out>
__global__ void __launch_bounds__(ExpattCuda::kThreads) ExpattRowsKernel(ExpattStep step) {
  const ExpattCuda& run = step.run;
  const ExpattBlock block(step);
  const DeviceBox box(run.p.extent, block.sample);
  if (box.Positions() <= run.max_direct) return;
  const float* weights = ExpattTableOf(run, block.sample);
  const float* row_sums = weights + run.height + run.width;
  const float* column_sums = row_sums + run.height;
  const float* from = run.turned + block.sample * step.from_channels * run.plane;
  const float* totals = run.totals + block.sample * step.from_channels;
  const auto positions = static_cast<float>(box.Positions());
  ExpattBlockProduct(
      block.row, block.column, run.height, static_cast<int>(step.from_channels) * run.width, box.size[1],
      [&](int row, int y) { return row < box.size[1] ? weights[ExpattDistance(row, y)] : 0.0f; },
      [&](int y, int column) {
        const int x = column % run.width;
        return x < box.size[2] ? from[column / run.width * run.plane + y * run.width + x] : 0.0f;
      },
      [&](int row, int column, float sum, float) {
        const int x = column % run.width;
        const int channel = column / run.width;
        float y = 0;
        if (row < box.size[1] && x < box.size[2]) {
          y = (sum + totals[channel]) / (positions + row_sums[row] * column_sums[x]);
          if (step.bias != nullptr) y += step.bias[channel];
        }
        ExpattWriteAt<Out>(step.to, block.sample, channel, row, x, y);
      });
}

// Rows of the product are output channels; columns are positions. The padding is not read, and is written as
// zero.
template <typename In, typename Out>
__global__ void __launch_bounds__(ExpattCuda::kThreads) ExpattMixKernel(ExpattStep step) {
  const ExpattCuda& run = step.run;
  const ExpattBlock block(step);
  const DeviceBox box(run.p.extent, block.sample);
  const auto is_valid = [&](int position) {
    return position / run.width < box.size[1] && position % run.width < box.size[2];
  };
  ExpattBlockProduct(
      block.row, block.column, static_cast<int>(step.to_channels), static_cast<int>(run.plane),
      static_cast<int>(step.from_channels),
      [&](int row, int channel) { return step.weights[row * step.from_channels + channel]; },
      [&](int channel, int position) {
        return is_valid(position) ? ExpattReadAt<In>(step.from, block.sample, channel, position / run.width,
                                                     position % run.width)
                                  : 0.0f;
      },
      [&](int row, int position, float sum, float) {
        float y = 0;
        if (is_valid(position)) y = sum + (step.bias == nullptr ? 0 : step.bias[row]);
        ExpattWriteAt<Out>(step.to, block.sample, row, position / run.width, position % run.width, y);
      });
}

// Launches a product's kernel over all samples.
template <typename Launch>
void LaunchExpattProduct(void (*kernel)(ExpattStep), int64_t rows, int64_t columns, ExpattStep step,
                         const Launch& launch) {
  step.row_blocks = (rows + ExpattCuda::kRows - 1) / ExpattCuda::kRows;
  step.column_blocks = (columns + ExpattCuda::kColumns - 1) / ExpattCuda::kColumns;
  launch(kernel, step.run.p.batch * step.row_blocks * step.column_blocks, ExpattCuda::kThreads, step);
}

// Applies the whole map.
template <typename T, typename In, typename Out, typename Launch>
void RunExpattDirect(const ExpattStep& step, const Launch& launch) {
  const ExpattCuda& run = step.run;
  const ExpattDirect direct(run.p, step.from, step.to, step.bias,
                            run.source == ExpattSource::kTable ? run.tables : nullptr, sizeof(In) == 2);
  const int64_t blocks = direct.groups * Blocks(direct.rows, ExpattDirect::kRows<T>) * direct.position_blocks;
  int64_t shared = 0;
  auto kernel = ExpattDirectKernel<T, In, Out, ExpattSource::kTable>;
  if (run.source == ExpattSource::kOwnTable) {
    kernel = ExpattDirectKernel<T, In, Out, ExpattSource::kOwnTable>;
    shared = run.plane < ExpattDirect::kMaxSharedTable ? run.plane : ExpattDirect::kMaxSharedTable;
  }
  if constexpr (sizeof(T) == 2) {
    if (run.source == ExpattSource::kStoredMap) {
      kernel = ExpattDirectKernel<T, In, Out, ExpattSource::kStoredMap>;
    }
  }
  launch(kernel, static_cast<unsigned>(blocks), 1, ExpattDirect::kThreads,
         static_cast<size_t>(shared) * sizeof(float), direct);
}

// Applies the map alone, from step.from to step.to. T is the type of the problem's maps.
template <typename T, typename In, typename Out, typename Launch>
void RunExpattMap(const ExpattStep& step, const Launch& launch) {
  const ExpattCuda& run = step.run;
  const int64_t channels = run.p.map_channels;
  const int64_t maps = run.p.batch * channels;
  if (run.p.kind == ExpattKind::kConstant) {
    launch(ExpattMeanKernel<In, Out>, maps, ExpattCuda::kThreads, step);
    return;
  }
  launch(ExpattTablesKernel<T>, run.Tables() * Blocks(run.table_floats, ExpattCuda::kThreads),
         ExpattCuda::kThreads, step);
  if (run.direct) RunExpattDirect<T, In, Out>(step, launch);
  if (!run.factors) return;
  launch(ExpattTotalsKernel<In>, maps, ExpattCuda::kThreads, step);
  LaunchExpattProduct(ExpattColumnsKernel<In>, channels * run.height, run.width, step, launch);
  LaunchExpattProduct(ExpattRowsKernel<Out>, run.height, channels * run.width, step, launch);
}

// Calls `launch` (see launch.cuh) for each kernel in order. T is the type of x and out.
template <typename T, typename Launch>
void RunExpattCuda(const ExpattProblem& p, float* workspace, const Launch& launch) {
  const ExpattCuda run(p, workspace);
  const auto read = [&](float* data) {
    const OutputMap map = run.MapAt(data);
    return FeatureMap{map.data, map.batch_stride, map.channel_stride, {0, run.width, 1}};
  };
  ExpattStep step{run, p.x, p.out, p.map_channels, p.map_channels, nullptr, nullptr, 1, 1};
  if (p.before != nullptr) {
    ExpattStep mix = step;
    mix.from_channels = p.channels;
    mix.to = run.MapAt(run.mixed);
    mix.weights = static_cast<const float*>(p.before);
    LaunchExpattProduct(ExpattMixKernel<T, float>, p.map_channels, run.plane, mix, launch);
    step.from = read(run.mixed);
  }
  if (p.after == nullptr) {
    step.bias = static_cast<const float*>(p.bias);
    p.before != nullptr ? RunExpattMap<T, float, T>(step, launch) : RunExpattMap<T, T, T>(step, launch);
    return;
  }
  step.to = run.MapAt(run.mapped);
  p.before != nullptr ? RunExpattMap<T, float, float>(step, launch) : RunExpattMap<T, T, float>(step, launch);
  step.from = read(run.mapped);
  step.to = p.out;
  step.to_channels = p.out_channels;
  step.weights = static_cast<const float*>(p.after);
  step.bias = static_cast<const float*>(p.bias);
  LaunchExpattProduct(ExpattMixKernel<float, T>, p.out_channels, run.plane, step, launch);
}

// Positions, and channels times a side of the image, are counted in 32 bits. Grids are one-dimensional.
inline bool ExpattCudaFits(const ExpattProblem& p) {
  const int64_t plane = p.extent.size[1] * p.extent.size[2];
  const int64_t side = p.extent.size[1] > p.extent.size[2] ? p.extent.size[1] : p.extent.size[2];
  int64_t channels = p.channels > p.out_channels ? p.channels : p.out_channels;
  if (p.map_channels > channels) channels = p.map_channels;
  constexpr int64_t kMaxCount = kMaxBlocks - 2 * ExpattCuda::kThreads;
  return plane <= kMaxCount && channels * (side + ExpattCuda::kRows) <= kMaxCount &&
         p.batch * channels <= kMaxCount &&
         p.batch * (plane / ExpattDirect::kPositions + 1) * (channels / ExpattCuda::kRows + 1) <= kMaxCount &&
         p.batch * (channels * side / ExpattCuda::kRows + 1) * (side / ExpattCuda::kRows + 1) <= kMaxCount;
}

}  // namespace saccade::kernels
