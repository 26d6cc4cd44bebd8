// Attention that computes every pair of a query and a key: both softmax kinds, and the mean kind if there are
// so few positions that this order is cheaper. Keys and values are arranged in blocks once per sample; then
// each tile of queries attends to all blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention/attention_tiles.h"
#include "kernels/common/parallel.h"
#include "kernels/tile/attend.h"

namespace saccade::kernels {

// Returns true if a sample with `positions` valid positions is computed this way.
inline bool AttentionTakesPairs(const AttentionProblem& p, int64_t positions) {
  return p.kind != AttentionKind::kMean || positions <= p.key_channels / p.heads;
}

template <typename A>
class AttentionPairs {
 public:
  AttentionPairs(const AttentionProblem& problem, const TileCode<A>& code, int threads, std::byte* workspace)
      : p_(problem),
        code_(code),
        tiles_(problem, code),
        parts_(p_.out_weight == nullptr ? p_.heads : 1),
        same_keys_and_values_(AreSame(p_.k, p_.v)),
        max_keys_(MaxKeys(p_)),
        query_tiles_(DivideUp(MaxPositions(p_), kTile)),
        row_(RoundUp(std::min(max_keys_, kKeyBlock), kRowPadding)),
        blocks_(DivideUp(max_keys_, kKeyBlock)),
        slots_(p_, query_tiles_ * parts_,
               (SlotSize(p_.key_channels) + (same_keys_and_values_ ? 0 : SlotSize(p_.value_channels))) *
                   static_cast<int64_t>(sizeof(A)),
               threads) {
    Arena arena(workspace);
    keys_ = arena.Take<A>(slots_.count * SlotSize(p_.key_channels));
    values_ = same_keys_and_values_ ? keys_ : arena.Take<A>(slots_.count * SlotSize(p_.value_channels));
    query_scale_ = arena.Take<A>(p_.key_channels);
    Arena one_thread(nullptr);
    const Scratch measured(*this, &one_thread);
    thread_bytes_ = static_cast<int64_t>(one_thread.bytes());
    scratch_ = arena.Take<std::byte>(threads * thread_bytes_);
    bytes_ = arena.bytes();
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) {
    std::fill_n(query_scale_, p_.key_channels, static_cast<A>(p_.logit_scale));
    const AttentionStep<AttentionPairs, Scratch> steps[] = {{blocks_, &AttentionPairs::Prepare},
                                                            {query_tiles_ * parts_, &AttentionPairs::Answer}};
    RunAttentionSteps(this, steps, p_.batch, slots_, parallel,
                      [this](int thread) { return ScratchOf(thread); });
  }

 private:
  // Number of keys per step of the softmax, chosen so that their logits fit in the innermost caches.
  static constexpr int64_t kKeyBlock = 128;

  struct Scratch {
    Scratch(const AttentionPairs& run, Arena* arena)
        : tiles(run.p_, arena),
          queries(arena->Take<A>(run.p_.key_channels / run.parts_ * kTile)),
          answers(arena->Take<A>(run.p_.value_channels / run.parts_ * kTile)),
          attention(run.code_, run.row_, arena) {}
    typename AttentionTiles<A>::Scratch tiles;
    A *queries, *answers;
    TileAttention<A> attention;
  };

  static bool AreSame(const AttentionInput& a, const AttentionInput& b) {
    return a.weight == nullptr && b.weight == nullptr && a.channels == b.channels &&
           a.map.data == b.map.data && a.map.batch_stride == b.map.batch_stride &&
           a.map.channel_stride == b.map.channel_stride &&
           std::equal(a.map.spatial_stride, a.map.spatial_stride + kMaxSpatialDims, b.map.spatial_stride);
  }
  template <typename SizeOf>
  static int64_t Keys(AttentionKind kind, const SizeOf& size) {
    return AttentionKeysAlong(kind, size(0)) * AttentionKeysAlong(kind, size(1)) *
           AttentionKeysAlong(kind, size(2));
  }
  // Maximum number of positions of samples that are computed this way.
  static int64_t MaxPositions(const AttentionProblem& p) {
    const int64_t all = PositionsOf(p.extent);
    return p.kind == AttentionKind::kMean ? std::min(all, p.key_channels / p.heads) : all;
  }
  static int64_t MaxKeys(const AttentionProblem& p) {
    return std::min(MaxPositions(p), Keys(p.kind, [&](int d) { return p.extent.size[d]; }));
  }

  int64_t SlotSize(int64_t channels) const { return blocks_ * channels * row_; }
  Scratch ScratchOf(int thread) const {
    Arena arena(scratch_ + thread * thread_bytes_);
    return Scratch(*this, &arena);
  }

  int64_t KeysOf(const ValidBox& box) const {
    return Keys(p_.kind, [&](int d) { return box.size(d); });
  }

  // Loads one block of keys and values: [channels][row_].
  void Prepare(int64_t sample, int64_t slot, int64_t block, Scratch* scratch) {
    const ValidBox box(p_.extent, sample);
    if (!AttentionTakesPairs(p_, box.positions())) return;
    if (block == 0) ZeroPadding(p_.out, p_.dtype, sample, p_.extent, box, p_.out_channels);
    const int64_t last = std::min((block + 1) * kKeyBlock, KeysOf(box));
    for (int64_t begin = block * kKeyBlock; begin < last; begin += kTile) {
      const int64_t count = std::min(kTile, last - begin);
      const auto load = [&](const AttentionInput& input, int64_t channels, A* to) {
        tiles_.LoadKeys(input, {sample, box, 0, channels, begin, count}, scratch->tiles,
                        BlockAt(to, slot, block, channels) + begin % kKeyBlock, row_);
      };
      load(p_.k, p_.key_channels, keys_);
      if (!same_keys_and_values_) load(p_.v, p_.value_channels, values_);
    }
  }

  A* BlockAt(A* slots, int64_t slot, int64_t block, int64_t channels) const {
    return slots + slot * SlotSize(channels) + block * channels * row_;
  }

  // Computes one tile of queries, for the heads of one part.
  void Answer(int64_t sample, int64_t slot, int64_t task, Scratch* scratch) {
    const ValidBox box(p_.extent, sample);
    const int64_t begin = task / parts_ * kTile;
    const int64_t count = std::min(kTile, box.positions() - begin);
    if (count <= 0 || !AttentionTakesPairs(p_, box.positions())) return;
    const int64_t part = task % parts_;
    const int64_t key_channels = p_.key_channels / parts_;
    const int64_t value_channels = p_.value_channels / parts_;
    tiles_.Load(p_.q, {sample, box, part * key_channels, key_channels, begin, count}, scratch->tiles,
                scratch->queries, kTile);
    if (p_.logit_scale != 1) {
      code_.affine(scratch->queries, key_channels, count, kTile, query_scale_, nullptr, nullptr);
    }
    const int64_t part_heads = p_.heads / parts_;
    for (int64_t h = 0; h < part_heads; ++h) {
      AttendHead(slot, part * part_heads + h, KeysOf(box), count,
                 scratch->queries + h * (key_channels / part_heads) * kTile,
                 scratch->answers + h * (value_channels / part_heads) * kTile, scratch);
    }
    tiles_.Store({sample, box, part * value_channels, value_channels, begin, count}, scratch->tiles,
                 scratch->answers);
  }

  void AttendHead(int64_t slot, int64_t head, int64_t keys, int64_t count, const A* queries, A* answers,
                  Scratch* scratch) {
    const int64_t key_channels = p_.key_channels / p_.heads;
    const int64_t value_channels = p_.value_channels / p_.heads;
    TileAttention<A>& attention = scratch->attention;
    attention.Begin(queries, count, key_channels, answers, value_channels);
    for (int64_t block = 0; block * kKeyBlock < keys; ++block) {
      const A* key = BlockAt(keys_, slot, block, p_.key_channels) + head * key_channels * row_;
      const A* value = BlockAt(values_, slot, block, p_.value_channels) + head * value_channels * row_;
      const int64_t block_keys = std::min(kKeyBlock, keys - block * kKeyBlock);
      if (p_.kind == AttentionKind::kMean) {
        attention.AddPlain({key, 1, row_}, {value, row_, 1}, block_keys);
      } else {
        attention.Add({key, 1, row_}, {value, row_, 1}, block_keys);
      }
    }
    if (p_.kind == AttentionKind::kMean) {
      attention.EndPlain(A{1} / static_cast<A>(keys));
    } else {
      attention.End();
    }
  }

  const AttentionProblem& p_;
  const TileCode<A>& code_;
  const AttentionTiles<A> tiles_;
  const int64_t parts_;
  const bool same_keys_and_values_;
  const int64_t max_keys_, query_tiles_, row_, blocks_;
  const AttentionSlots slots_;
  size_t bytes_;
  int64_t thread_bytes_;
  A *keys_, *values_, *query_scale_;
  std::byte* scratch_;
};

}  // namespace saccade::kernels
