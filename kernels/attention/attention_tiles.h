// Queries, keys and values as tiles: loaded, transformed and pooled; and stores of the resulting tiles.
// Included only by attention_cpu.cc, like attention_pairs.h and attention_context.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention_problem.h"
#include "kernels/common/arena.h"
#include "kernels/common/parallel.h"
#include "kernels/common/valid_box.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {

// Decides how many samples are processed at once; each has a slot of memory. A small sample is a single task,
// and each thread has one slot. Of larger samples, enough are processed together to occupy all threads, and
// more if their slots are small, because every parallel step has a fixed cost.
struct AttentionSlots {
  AttentionSlots(const AttentionProblem& p, int64_t tasks_a_sample, int64_t slot_bytes, int threads) {
    constexpr int64_t kMaxSmallPositions = 1024;
    constexpr int64_t kSmallSlotBytes = 64 * 1024;
    whole_samples = PositionsOf(p.extent) <= kMaxSmallPositions && p.batch >= 2 * threads;
    const int64_t wanted =
        std::max(DivideUp(8 * threads, tasks_a_sample), kSmallSlotBytes / std::max<int64_t>(slot_bytes, 1));
    count = whole_samples ? threads : std::clamp<int64_t>(wanted, 1, std::max<int64_t>(p.batch, 1));
  }
  bool whole_samples;
  int64_t count;
};

// One step of an attention: Run's member that computes one task of one sample, and the number of tasks.
template <typename Run, typename Scratch>
struct AttentionStep {
  int64_t tasks;
  void (Run::*task)(int64_t sample, int64_t slot, int64_t index, Scratch* scratch);
};

// Runs the steps in their order for all samples. `scratch_of` returns a thread's Scratch.
template <typename Run, typename Scratch, size_t kSteps, typename ScratchOf>
void RunAttentionSteps(Run* run, const AttentionStep<Run, Scratch> (&steps)[kSteps], int64_t batch,
                       const AttentionSlots& slots, const Parallel& parallel, const ScratchOf& scratch_of) {
  if (slots.whole_samples) {
    parallel.run(batch, 1, [&](int64_t sample, int64_t end, int thread) {
      Scratch scratch = scratch_of(thread);
      for (; sample < end; ++sample) {
        for (const auto& step : steps) {
          for (int64_t i = 0; i < step.tasks; ++i) (run->*step.task)(sample, thread, i, &scratch);
        }
      }
    });
    return;
  }
  for (int64_t first = 0; first < batch; first += slots.count) {
    const int64_t samples = std::min(slots.count, batch - first);
    for (const auto& step : steps) {
      if (step.tasks == 0) continue;
      parallel.run(samples * step.tasks, 1, [&](int64_t i, int64_t end, int thread) {
        Scratch scratch = scratch_of(thread);
        for (; i < end; ++i) {
          const int64_t slot = i / step.tasks;
          (run->*step.task)(first + slot, slot, i % step.tasks, &scratch);
        }
      });
    }
  }
}

// Conversion between a problem's maps and tiles.
template <typename A>
class AttentionTiles {
 public:
  // Scratch memory of one thread.
  struct Scratch {
    Scratch(const AttentionProblem& p, Arena* arena) {
      int64_t read = 0;
      for (const AttentionInput* input : {&p.q, &p.k, &p.v}) {
        if (input->weight != nullptr) read = std::max(read, input->channels);
      }
      x = arena->Take<A>(read * kTile);
      neighbours =
          arena->Take<A>(p.kind == AttentionKind::kPooled ? std::max(p.k.channels, p.v.channels) * kTile : 0);
      reprojected = arena->Take<A>(p.out_weight == nullptr ? 0 : p.out_channels * kTile);
      residual = arena->Take<A>(p.residual.data == nullptr ? 0 : p.out_channels * kTile);
    }
    A *x, *neighbours, *reprojected, *residual;
  };

  AttentionTiles(const AttentionProblem& p, const TileCode<A>& code) : p_(p), code_(code) {}

  // Loads a block of a transformed input; its channels are those after the transform. At most kTile
  // positions.
  void Load(const AttentionInput& input, const MapBlock& block, const Scratch& scratch, A* tile,
            int64_t row) const {
    Transform(input, block, scratch, tile, row, [&](const MapBlock& read, A* to, int64_t to_row) {
      LoadTile(code_, input.map, p_.dtype, read, to, to_row);
    });
  }

  // Loads a block of keys. For kPooled, keys are transformed maxima over windows of positions, and the
  // block's positions number the windows.
  void LoadKeys(const AttentionInput& input, const MapBlock& block, const Scratch& scratch, A* tile,
                int64_t row) const {
    if (p_.kind != AttentionKind::kPooled) {
      Load(input, block, scratch, tile, row);
      return;
    }
    Transform(input, block, scratch, tile, row, [&](const MapBlock& read, A* to, int64_t to_row) {
      LoadLargest(input.map, read, scratch.neighbours, to, to_row);
    });
  }

  // Stores a block of the attended values, after projection, scale, shift and residual. With an out_weight,
  // `tile` must hold all value channels.
  void Store(MapBlock block, const Scratch& scratch, A* tile) const {
    if (p_.out_weight != nullptr) {
      const MatrixView<A> weight{static_cast<const A*>(p_.out_weight), p_.value_channels, 1};
      code_.product(p_.out_channels, block.count, p_.value_channels, weight, tile, kTile, scratch.reprojected,
                    kTile, false);
      tile = scratch.reprojected;
      block.channels = p_.out_channels;
    }
    const bool residual = p_.residual.data != nullptr;
    if (residual) LoadTile(code_, p_.residual, p_.dtype, block, scratch.residual);
    if (residual || p_.scale != nullptr || p_.shift != nullptr) {
      const auto from = [&](const void* weights) {
        return weights == nullptr ? nullptr : static_cast<const A*>(weights) + block.channel;
      };
      code_.affine(tile, block.channels, block.count, kTile, from(p_.scale), from(p_.shift),
                   residual ? scratch.residual : nullptr);
    }
    StoreTile(code_, tile, p_.out, p_.dtype, block);
  }

 private:
  // Reads the map with load(block to read, to, row of to), then applies the input's weight and bias.
  template <typename LoadMap>
  void Transform(const AttentionInput& input, const MapBlock& block, const Scratch& scratch, A* tile,
                 int64_t row, const LoadMap& load) const {
    if (input.weight == nullptr) {
      load(block, tile, row);
      return;
    }
    load({block.sample, block.box, 0, input.channels, block.begin, block.count}, scratch.x, kTile);
    const MatrixView<A> weight{static_cast<const A*>(input.weight) + block.channel * input.channels,
                               input.channels, 1};
    code_.product(block.channels, block.count, input.channels, weight, scratch.x, kTile, tile, row, false);
    if (input.bias == nullptr) return;
    code_.affine(tile, block.channels, block.count, row, nullptr,
                 static_cast<const A*>(input.bias) + block.channel, nullptr);
  }

  // Loads the maxima over the block's windows.
  void LoadLargest(const FeatureMap& map, const MapBlock& block, A* neighbours, A* tile, int64_t row) const {
    for (int corner = 0; corner < 8; ++corner) {
      const int64_t step[kMaxSpatialDims] = {corner >> 2, (corner >> 1) & 1, corner & 1};
      const auto within = [&](int d) { return step[d] == 0 || block.box.size(d) > 1; };
      if (!within(0) || !within(1) || !within(2)) continue;
      if (corner == 0) {
        LoadCorner(map, block, step, tile, row);
        continue;
      }
      LoadCorner(map, block, step, neighbours, kTile);
      TakeLarger(neighbours, block.channels, block.count, tile, row);
    }
  }

  // Loads one position of each of the block's windows: `step` from the window's first position, clamped to
  // the box.
  void LoadCorner(const FeatureMap& map, const MapBlock& block, const int64_t* step, A* tile,
                  int64_t row) const {
    const ValidBox& box = block.box;
    Extent windows;
    for (int d = 0; d < kMaxSpatialDims; ++d) windows.size[d] = AttentionKeysAlong(p_.kind, box.size(d));
    const auto load = [&](const int64_t* at, int64_t length, A* to) {
      int64_t element = block.sample * map.batch_stride + block.channel * map.channel_stride;
      for (int d = 0; d < kMaxSpatialDims; ++d) {
        element += std::min(2 * at[d] + step[d], box.size(d) - 1) * map.spatial_stride[d];
      }
      const Strip strip{static_cast<const char*>(map.data) + element * BytesOf(p_.dtype), p_.dtype,
                        map.channel_stride, 2 * map.spatial_stride[2]};
      code_.load(strip, block.channels, length, to, row);
    };
    ValidBox(windows, 0)
        .ForRows(block.begin, block.begin + block.count,
                 [&](int64_t plane, int64_t line, int64_t column, int64_t offset, int64_t length) {
                   const int64_t at[] = {plane, line, column};
                   const int64_t last[] = {plane, line, column + length - 1};
                   const bool cut = 2 * last[2] + step[2] >= box.size(2);
                   if (length > (cut ? 1 : 0)) load(at, length - (cut ? 1 : 0), tile + offset);
                   if (cut) load(last, 1, tile + offset + length - 1);
                 });
  }

  static void TakeLarger(const A* from, int64_t channels, int64_t count, A* tile, int64_t row) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t j = 0; j < count; ++j) {
        const A value = from[c * kTile + j];
        A& largest = tile[c * row + j];
        // A NaN stays NaN, as in ATen's maximum.
        largest = value > largest || std::isnan(value) ? value : largest;
      }
    }
  }

  const AttentionProblem& p_;
  const TileCode<A>& code_;
};

}  // namespace saccade::kernels
