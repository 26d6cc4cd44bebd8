// Attention without a softmax, (1/N) (V K^T) Q, in the order that is linear in the number of positions: first
// the context V K^T of every head, summed over splits of the positions, then its product with each tile of
// queries.
//
// If keys and values are transforms of the same map, summing x x^T may be cheaper than summing V K^T = W_v (x
// x^T) W_k^T; biases are then represented by an additional channel of x that is always one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention/attention_pairs.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/common/parallel.h"

namespace saccade::kernels {

template <typename A>
class AttentionContext {
 public:
  AttentionContext(const AttentionProblem& problem, const TileCode<A>& code, int threads,
                   std::byte* workspace)
      : p_(problem),
        code_(code),
        tiles_(problem, code),
        head_keys_(p_.key_channels / p_.heads),
        head_values_(p_.value_channels / p_.heads),
        head_row_(RoundUp(head_keys_, kRowPadding)),
        from_input_(SumsOfInputAreCheaper(p_)),
        input_channels_(p_.k.channels + (p_.k.bias != nullptr || p_.v.bias != nullptr ? 1 : 0)),
        input_row_(RowOfHeads(input_channels_)),
        keys_row_(RowOfHeads(p_.key_channels)),
        query_tiles_(DivideUp(PositionsOf(p_.extent), kTile)),
        splits_(Splits::Most(PositionsOf(p_.extent))),
        sums_size_(from_input_ ? input_channels_ * input_row_ : p_.value_channels * head_row_),
        slots_(p_, splits_, splits_ * sums_size_ * static_cast<int64_t>(sizeof(A)), threads) {
    Arena arena(workspace);
    sums_ = arena.Take<A>(slots_.count * splits_ * sums_size_);
    contexts_ = arena.Take<A>(from_input_ ? slots_.count * p_.value_channels * head_row_ : 0);
    value_weight_ = arena.Take<A>(from_input_ ? p_.value_channels * input_channels_ : 0);
    key_weight_ = arena.Take<A>(from_input_ ? input_channels_ * keys_row_ : 0);
    Arena one_thread(nullptr);
    const Scratch measured(*this, &one_thread);
    thread_bytes_ = static_cast<int64_t>(one_thread.bytes());
    scratch_ = arena.Take<std::byte>(threads * thread_bytes_);
    bytes_ = arena.bytes();
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) {
    if (from_input_) LayOutWeights();
    const AttentionStep<AttentionContext, Scratch> steps[] = {{splits_, &AttentionContext::Reduce},
                                                              {MergeTasks(), &AttentionContext::Merge},
                                                              {CombineTasks(), &AttentionContext::Combine},
                                                              {query_tiles_, &AttentionContext::Answer}};
    RunAttentionSteps(this, steps, p_.batch, slots_, parallel,
                      [this](int thread) { return ScratchOf(thread); });
  }

 private:
  static constexpr int64_t kMergeElements = 16 * 1024;

  // Splits of equal length (except the last), which depends on the number of positions alone. The count never
  // exceeds that of a larger sample.
  struct Splits {
    static int64_t Most(int64_t positions) { return std::min<int64_t>(DivideUp(positions, 512), 8); }
    explicit Splits(int64_t positions)
        : length(RoundUp(DivideUp(positions, Most(positions)), kTile)), count(DivideUp(positions, length)) {}
    int64_t length, count;
  };

  struct Scratch {
    Scratch(const AttentionContext& run, Arena* arena)
        : tiles(run.p_, arena),
          rows(arena->Take<A>(kTile * (run.from_input_ ? run.input_row_ : run.keys_row_))),
          keys(arena->Take<A>(run.p_.key_channels * kTile)),
          values(arena->Take<A>(run.p_.value_channels * kTile)) {}
    typename AttentionTiles<A>::Scratch tiles;
    A *rows, *keys, *values;  // keys also holds the tile of queries, values that of results
  };

  // Row length of a matrix whose columns are read head by head: leaves room to read a multiple of kRowPadding
  // columns from the start of any head.
  int64_t RowOfHeads(int64_t columns) const {
    return RoundUp(columns, kRowPadding) + (p_.heads > 1 ? kRowPadding : 0);
  }

  static bool SumsOfInputAreCheaper(const AttentionProblem& p) {
    if (p.k.weight == nullptr && p.v.weight == nullptr) return false;
    if (p.k.map.data != p.v.map.data || p.k.channels != p.v.channels) return false;
    const int64_t transforms = (p.k.weight == nullptr ? 0 : p.key_channels * p.k.channels) +
                               (p.v.weight == nullptr ? 0 : p.value_channels * p.v.channels);
    return p.k.channels * p.k.channels < transforms + p.value_channels * p.key_channels / p.heads;
  }

  Scratch ScratchOf(int thread) const {
    Arena arena(scratch_ + thread * thread_bytes_);
    return Scratch(*this, &arena);
  }

  A* SumsAt(int64_t slot, int64_t split) const { return sums_ + (slot * splits_ + split) * sums_size_; }
  // [value_channels][head_row_]: for each value channel, the key channels of its head.
  A* ContextAt(int64_t slot) const {
    return from_input_ ? contexts_ + slot * p_.value_channels * head_row_ : SumsAt(slot, 0);
  }
  int64_t MergeTasks() const { return DivideUp(sums_size_, kMergeElements); }
  int64_t RowTasks() const { return DivideUp(head_values_, kTile); }
  int64_t CombineTasks() const { return from_input_ ? p_.heads * RowTasks() : 0; }

  // Fills value_weight_ [value_channels][input_channels_] and key_weight_ [input_channels_][keys_row_], the
  // transpose of the key weight. The bias is the input's last channel; a missing weight is the identity.
  void LayOutWeights() {
    const auto entry = [&](const AttentionInput& input, int64_t row, int64_t c) {
      if (c == input.channels) return input.bias == nullptr ? A{0} : static_cast<const A*>(input.bias)[row];
      if (input.weight == nullptr) return row == c ? A{1} : A{0};
      return static_cast<const A*>(input.weight)[row * input.channels + c];
    };
    for (int64_t c = 0; c < input_channels_; ++c) {
      for (int64_t row = 0; row < p_.key_channels; ++row) {
        key_weight_[c * keys_row_ + row] = entry(p_.k, row, c);
      }
    }
    for (int64_t row = 0; row < p_.value_channels; ++row) {
      for (int64_t c = 0; c < input_channels_; ++c) {
        value_weight_[row * input_channels_ + c] = entry(p_.v, row, c);
      }
    }
  }

  void Reduce(int64_t sample, int64_t slot, int64_t split, Scratch* scratch) {
    const ValidBox box(p_.extent, sample);
    if (AttentionTakesPairs(p_, box.positions())) return;
    if (split == 0) ZeroPadding(p_.out, p_.dtype, sample, p_.extent, box, p_.out_channels);
    const int64_t length = Splits(box.positions()).length;
    const int64_t last = std::min((split + 1) * length, box.positions());
    for (int64_t begin = split * length; begin < last; begin += kTile) {
      const int64_t count = std::min(kTile, last - begin);
      const bool add = begin > split * length;
      if (from_input_) {
        AddInput(sample, box, begin, count, SumsAt(slot, split), add, scratch);
      } else {
        AddPairs(sample, box, begin, count, SumsAt(slot, split), add, scratch);
      }
    }
  }

  // sums += x x^T
  void AddInput(int64_t sample, const ValidBox& box, int64_t begin, int64_t count, A* sums, bool add,
                Scratch* scratch) {
    A* rows = scratch->rows;
    LoadPositions(code_, p_.k.map, p_.dtype, {sample, box, 0, p_.k.channels, begin, count}, rows, input_row_);
    if (input_channels_ > p_.k.channels) {
      for (int64_t i = 0; i < count; ++i) rows[i * input_row_ + p_.k.channels] = A{1};
    }
    code_.product(input_channels_, input_channels_, count, {rows, 1, input_row_}, rows, input_row_, sums,
                  input_row_, add);
  }

  // sums += V K^T, head by head
  void AddPairs(int64_t sample, const ValidBox& box, int64_t begin, int64_t count, A* sums, bool add,
                Scratch* scratch) {
    const MapBlock keys{sample, box, 0, p_.key_channels, begin, count};
    if (p_.k.weight == nullptr) {
      LoadPositions(code_, p_.k.map, p_.dtype, keys, scratch->rows, keys_row_);
    } else {
      tiles_.Load(p_.k, keys, scratch->tiles, scratch->keys, kTile);
      code_.transpose(scratch->keys, p_.key_channels, count, kTile, scratch->rows, keys_row_);
    }
    tiles_.Load(p_.v, {sample, box, 0, p_.value_channels, begin, count}, scratch->tiles, scratch->values,
                kTile);
    for (int64_t h = 0; h < p_.heads; ++h) {
      code_.product(head_values_, head_keys_, count, {scratch->values + h * head_values_ * kTile, kTile, 1},
                    scratch->rows + h * head_keys_, keys_row_, sums + h * head_values_ * head_row_, head_row_,
                    add);
    }
  }

  // Adds the splits' sums in order into the first split's, and divides by N.
  void Merge(int64_t sample, int64_t slot, int64_t task, Scratch* /*scratch*/) {
    const ValidBox box(p_.extent, sample);
    if (AttentionTakesPairs(p_, box.positions())) return;
    const A factor = A{1} / static_cast<A>(box.positions());
    const int64_t splits = Splits(box.positions()).count;
    const int64_t end = std::min((task + 1) * kMergeElements, sums_size_);
    A* sums = SumsAt(slot, 0);
    for (int64_t split = 1; split < splits; ++split) {
      const A* part = SumsAt(slot, split);
      for (int64_t i = task * kMergeElements; i < end; ++i) sums[i] += part[i];
    }
    for (int64_t i = task * kMergeElements; i < end; ++i) sums[i] *= factor;
  }

  // Computes up to kTile rows of one head's context from the sums of x x^T.
  void Combine(int64_t sample, int64_t slot, int64_t task, Scratch* scratch) {
    if (AttentionTakesPairs(p_, ValidBox(p_.extent, sample).positions())) return;
    const int64_t head = task / RowTasks();
    const int64_t begin = task % RowTasks() * kTile;
    const int64_t rows = std::min(kTile, head_values_ - begin);
    const int64_t row = head * head_values_ + begin;
    const A* sums = SumsAt(slot, 0);
    A* context = ContextAt(slot) + row * head_row_;
    const MatrixView<A> values{value_weight_ + row * input_channels_, input_channels_, 1};
    if (p_.k.weight == nullptr) {
      code_.product(rows, head_keys_, input_channels_, values, sums + head * head_keys_, input_row_, context,
                    head_row_, false);
      return;
    }
    MatrixView<A> half{sums + row * input_row_, input_row_, 1};
    if (p_.v.weight != nullptr) {
      code_.product(rows, input_channels_, input_channels_, values, sums, input_row_, scratch->rows,
                    input_row_, false);
      half = {scratch->rows, input_row_, 1};
    }
    code_.product(rows, head_keys_, input_channels_, half, key_weight_ + head * head_keys_, keys_row_,
                  context, head_row_, false);
  }

  void Answer(int64_t sample, int64_t slot, int64_t tile, Scratch* scratch) {
    const ValidBox box(p_.extent, sample);
    const int64_t begin = tile * kTile;
    const int64_t count = std::min(kTile, box.positions() - begin);
    if (count <= 0 || AttentionTakesPairs(p_, box.positions())) return;
    tiles_.Load(p_.q, {sample, box, 0, p_.key_channels, begin, count}, scratch->tiles, scratch->keys, kTile);
    for (int64_t h = 0; h < p_.heads; ++h) {
      code_.product(head_values_, count, head_keys_,
                    {ContextAt(slot) + h * head_values_ * head_row_, head_row_, 1},
                    scratch->keys + h * head_keys_ * kTile, kTile, scratch->values + h * head_values_ * kTile,
                    kTile, false);
    }
    tiles_.Store({sample, box, 0, p_.value_channels, begin, count}, scratch->tiles, scratch->values);
  }

  const AttentionProblem& p_;
  const TileCode<A>& code_;
  const AttentionTiles<A> tiles_;
  const int64_t head_keys_, head_values_, head_row_;
  const bool from_input_;
  const int64_t input_channels_, input_row_, keys_row_;
  const int64_t query_tiles_, splits_, sums_size_;
  const AttentionSlots slots_;
  size_t bytes_;
  int64_t thread_bytes_;
  A *sums_, *contexts_, *value_weight_, *key_weight_;
  std::byte* scratch_;
};

}  // namespace saccade::kernels
