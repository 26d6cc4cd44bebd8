#include "kernels/sao/sao_cpu.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/common/arena.h"
#include "kernels/common/valid_box.h"
#include "kernels/sao/sao_blocks.h"

namespace saccade::kernels {
namespace {

// How the positions of one sample are split. Depends on their number and the channels alone: if it depended
// on the batch or the threads, so would the rounding of the sums.
struct Split {
  // Maximum number of splits, each of which keeps its own partial sums.
  static constexpr int64_t kMaxCount = 64;

  // Maximum number of positions of a block, chosen so that it stays in the L2 cache between its two reads.
  static int64_t MaxBlock(int64_t channels) {
    return std::max<int64_t>(32 * 1024 / channels, 64) / kSaoRowPadding * kSaoRowPadding;
  }

  Split(int64_t positions, int64_t channels) {
    const int64_t blocks = std::max<int64_t>(DivideUp(positions, MaxBlock(channels)), 1);
    block = RoundUp(DivideUp(std::max<int64_t>(positions, 1), blocks), kSaoRowPadding);
    length = block * DivideUp(blocks, kMaxCount);
  }

  int64_t block;   // positions per pass of the inner loops
  int64_t length;  // positions per split: a whole number of blocks
};

const SaoCode& CodeOf(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa == CpuIsa::kAvx2) return SaoAvx2Code();
  if (isa == CpuIsa::kAvx512) return SaoAvx512Code();
#endif
  return SaoPortableCode();
}

template <typename T>
const SaoBlockCode<T>& CodeFor([[maybe_unused]] CpuIsa isa) {
  if constexpr (std::is_same_v<T, double>) {
    return SaoDoubleCode();
  } else if constexpr (std::is_same_v<T, float>) {
    return CodeOf(isa).f32;
  } else {
    return CodeOf(isa).bf16;
  }
}

template <typename T>
class SaoRun {
 public:
  using A = Accumulate<T>;

  SaoRun(const SaoProblem& problem, CpuIsa isa, int threads, std::byte* base)
      : p_(problem),
        code_(CodeFor<T>(isa)),
        module_(problem.value_weight != nullptr),
        keep_scores_(problem.global_term && SameMap(problem.q, problem.k) &&
                     problem.query_scores == problem.key_scores),
        // Upper bounds: a padded sample has fewer positions, so it has neither more splits nor longer blocks.
        splits_(
            std::clamp<int64_t>(DivideUp(p_.positions, Split::MaxBlock(p_.channels)), 1, Split::kMaxCount)),
        block_row_(std::min(Split::MaxBlock(p_.channels), RoundUp(p_.positions, kSaoRowPadding))),
        sample_row_(RoundUp(p_.positions, kSaoRowPadding)),
        moment_rows_(!p_.global_term ? 1
                     : module_       ? 1 + p_.heads
                                     : 2) {
    Arena arena(base);
    moments_ = arena.Take<A>(p_.batch * splits_ * moment_rows_ * p_.channels);
    slope_ = arena.Take<A>(p_.batch * p_.channels);
    offset_ = arena.Take<A>(p_.batch * p_.channels);
    rows_ = arena.Take<A>((1 + p_.heads) * (keep_scores_ ? p_.batch * sample_row_ : threads * block_row_));
    folded_ = arena.Take<A>(threads * 2 * p_.channels);
    packed_ = arena.Take<T>(p_.extent.valid == nullptr ? 0 : threads * 2 * p_.channels * block_row_);
    bytes_ = arena.bytes();
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) {
    // Minimum number of elements per thread; below it, another thread does not pay off.
    constexpr int64_t kGrainElements = 16 * 1024;
    const int64_t sample_elements = std::max<int64_t>(p_.channels * p_.positions, 1);
    if (splits_ == 1) {
      // Small samples run all three steps while the sample is in the cache, in a single parallel step.
      parallel.run(p_.batch, DivideUp(kGrainElements, sample_elements),
                   [this](int64_t b, int64_t end, int t) {
                     for (; b < end; ++b) {
                       Reduce(b, 0, t);
                       for (int64_t head = 0; head < p_.heads; ++head) Combine(b, head, t);
                       Apply(b, 0, t);
                     }
                   });
      return;
    }
    const auto each_split = [&](void (SaoRun::*step)(int64_t, int64_t, int)) {
      parallel.run(p_.batch * splits_, 1, [this, step](int64_t i, int64_t end, int t) {
        for (; i < end; ++i) (this->*step)(i / splits_, i % splits_, t);
      });
    };
    each_split(&SaoRun::Reduce);
    parallel.run(p_.batch * p_.heads, 1, [this](int64_t i, int64_t end, int t) {
      for (; i < end; ++i) Combine(i / p_.heads, i % p_.heads, t);
    });
    each_split(&SaoRun::Apply);
  }

 private:
  // A row of ones, then one row of scores per head.
  struct Rows {
    A* ones;
    int64_t stride;
    A* scores() const { return ones + stride; }
  };

  Rows RowsAt(int64_t sample, int64_t begin, int thread) const {
    if (keep_scores_) return {rows_ + sample * (1 + p_.heads) * sample_row_ + begin, sample_row_};
    return {rows_ + thread * (1 + p_.heads) * block_row_, block_row_};
  }

  template <typename Element>
  SaoBlock<Element> BlockOf(Element* data, int64_t positions, int64_t channel_stride,
                            int64_t position_stride) const {
    return {data, p_.channels, positions, channel_stride, position_stride, !p_.channels_last};
  }

  T* Packed(int which, int thread) const { return packed_ + (2 * thread + which) * p_.channels * block_row_; }

  SaoBlock<T> PackedBlock(int which, int thread, int64_t positions) const {
    return BlockOf(Packed(which, thread), positions, p_.channels_last ? 1 : block_row_,
                   p_.channels_last ? p_.channels : 1);
  }

  // Copies a range of valid positions between a sample and a packed block, in either direction.
  template <typename From, typename To>
  void CopyRun(const SaoBlock<From>& from, const SaoBlock<To>& to, int64_t from_at, int64_t to_at,
               int64_t length) const {
    const int64_t outer = p_.channels_last ? length : p_.channels;
    const int64_t inner = p_.channels_last ? p_.channels : length;
    const int64_t from_step = p_.channels_last ? from.position_stride : from.channel_stride;
    const int64_t to_step = p_.channels_last ? to.position_stride : to.channel_stride;
    From* source = from.data + from_at * from.position_stride;
    To* target = to.data + to_at * to.position_stride;
    for (int64_t i = 0; i < outer; ++i) {
      std::memcpy(target + i * to_step, source + i * from_step, inner * sizeof(T));
    }
  }

  // Returns the valid positions [begin, end) of a sample; for a padded sample, as a packed copy. So a padded
  // sample takes exactly the same steps as the sample without padding, and gives the same bits.
  SaoBlock<const T> Read(const FlatMap& map, int64_t sample, const ValidBox& box, int64_t begin, int64_t end,
                         int which, int thread) const {
    const T* data = static_cast<const T*>(map.data) + sample * map.batch_stride;
    if (box.whole()) {
      return BlockOf(data + begin * map.position_stride, end - begin, map.channel_stride,
                     map.position_stride);
    }
    const auto source = BlockOf(data, p_.positions, map.channel_stride, map.position_stride);
    const auto packed = PackedBlock(which, thread, end - begin);
    box.ForRuns(begin, end,
                [&](int64_t from, int64_t to, int64_t length) { CopyRun(source, packed, from, to, length); });
    return BlockOf<const T>(packed.data, packed.positions, packed.channel_stride, packed.position_stride);
  }

  SaoBlock<T> OutSample(int64_t sample) const {
    T* data = static_cast<T*>(p_.out) + sample * p_.channels * p_.positions;
    return BlockOf(data, p_.positions, p_.channels_last ? 1 : p_.positions,
                   p_.channels_last ? p_.channels : 1);
  }

  // Calls visit(begin, end) for each block of one split.
  template <typename Visit>
  void ForBlocks(const ValidBox& box, int64_t split, const Visit& visit) const {
    const Split cut(box.positions(), p_.channels);
    const int64_t last = std::min((split + 1) * cut.length, box.positions());
    for (int64_t begin = split * cut.length; begin < last; begin += cut.block) {
      visit(begin, std::min(begin + cut.block, last));
    }
  }

  A* MomentsAt(int64_t sample, int64_t split) const {
    return moments_ + (sample * splits_ + split) * moment_rows_ * p_.channels;
  }

  // `folded` as in SaoProblem: [heads, C], or null.
  void Score(const SaoBlock<const T>& x, const void* folded, const Rows& rows) const {
    if (folded == nullptr) {
      code_.scores(x, static_cast<const A*>(p_.w), p_.heads, rows.scores(), rows.stride);
      return;
    }
    for (int64_t head = 0; head < p_.heads; ++head) {
      code_.scores(x, static_cast<const A*>(folded) + head * p_.channels, 1,
                   rows.scores() + head * rows.stride, rows.stride);
    }
  }

  // Computes the sums of the values, and of the values times the scores, over the positions of one split.
  void Reduce(int64_t sample, int64_t split, int thread) {
    const ValidBox box(p_.extent, sample);
    A* moments = MomentsAt(sample, split);
    std::fill_n(moments, moment_rows_ * p_.channels, A{0});
    ForBlocks(box, split, [&](int64_t begin, int64_t end) {
      const auto values = Read(p_.v, sample, box, begin, end, 0, thread);
      const Rows rows = RowsAt(sample, begin, thread);
      std::fill_n(rows.ones, RoundUp(end - begin, kSaoRowPadding), A{1});
      if (p_.global_term) {
        const auto keys = SameMap(p_.k, p_.v) ? values : Read(p_.k, sample, box, begin, end, 1, thread);
        Score(keys, p_.key_scores, rows);
      }
      if (module_ || !p_.global_term) {
        code_.moments(values, rows.ones, moment_rows_, rows.stride, moments, p_.channels);
        return;
      }
      const int64_t head_channels = p_.channels / p_.heads;
      for (int64_t head = 0; head < p_.heads; ++head) {
        auto part = values;
        part.channels = head_channels;
        part.data += head * head_channels * values.channel_stride;
        // Two rows: the ones and this head's scores.
        code_.moments(part, rows.ones, 2, (1 + head) * rows.stride, moments + head * head_channels,
                      p_.channels);
      }
    });
  }

  // Adds the splits' sums of one row of moments, in order.
  void FoldSplits(int64_t sample, int64_t row, int64_t begin, int64_t end, A* sums) const {
    std::fill(sums + begin, sums + end, A{0});
    for (int64_t split = 0; split < splits_; ++split) {
      const A* part = MomentsAt(sample, split) + row * p_.channels;
      for (int64_t c = begin; c < end; ++c) sums[c] += part[c];
    }
  }

  // Computes a head's slope and offset: its result at every position is slope * score + offset.
  void Combine(int64_t sample, int64_t head, int thread) {
    const ValidBox box(p_.extent, sample);
    if (head == 0 && !box.whole()) {
      std::memset(OutSample(sample).data, 0, p_.channels * p_.positions * sizeof(T));
    }
    const int64_t begin = head * (p_.channels / p_.heads);
    const int64_t end = begin + p_.channels / p_.heads;
    A* slope = slope_ + sample * p_.channels;
    A* offset = offset_ + sample * p_.channels;
    if (module_) {
      A* sums = folded_ + thread * 2 * p_.channels;
      A* weighted = p_.global_term ? sums + p_.channels : sums;
      FoldSplits(sample, 0, 0, p_.channels, sums);
      if (p_.global_term) FoldSplits(sample, 1 + head, 0, p_.channels, weighted);
      code_.transform(static_cast<const A*>(p_.value_weight) + begin * p_.channels, end - begin, p_.channels,
                      sums, weighted, slope + begin, offset + begin);
      for (int64_t c = begin; c < end; ++c) {
        const A scale = static_cast<const A*>(p_.scale)[c];
        slope[c] *= scale;
        offset[c] = (p_.global_term ? scale * offset[c] : A{0}) + static_cast<const A*>(p_.shift)[c];
      }
      return;
    }
    const A count = static_cast<A>(std::max<int64_t>(box.positions(), 1));
    FoldSplits(sample, 0, begin, end, slope);
    p_.global_term ? FoldSplits(sample, 1, begin, end, offset)
                   : std::fill(offset + begin, offset + end, A{0});
    for (int64_t c = begin; c < end; ++c) {
      slope[c] /= count;
      offset[c] /= count;
    }
  }

  void Apply(int64_t sample, int64_t split, int thread) {
    const ValidBox box(p_.extent, sample);
    const SaoBlock<T> out = OutSample(sample);
    ForBlocks(box, split, [&](int64_t begin, int64_t end) {
      const Rows rows = RowsAt(sample, begin, thread);
      SaoBlock<const T> x;
      if (!keep_scores_ || p_.residual) x = Read(p_.q, sample, box, begin, end, 0, thread);
      if (!keep_scores_) Score(x, p_.query_scores, rows);
      SaoBlock<T> to = box.whole() ? out : PackedBlock(1, thread, end - begin);
      if (box.whole()) {
        to.data += begin * out.position_stride;
        to.positions = end - begin;
      }
      code_.apply(p_.residual ? &x : nullptr, slope_ + sample * p_.channels, offset_ + sample * p_.channels,
                  p_.heads, rows.scores(), rows.stride, to);
      if (box.whole()) return;
      box.ForRuns(begin, end,
                  [&](int64_t at, int64_t from, int64_t length) { CopyRun(to, out, from, at, length); });
    });
  }

  const SaoProblem& p_;
  const SaoBlockCode<T>& code_;
  const bool module_;
  const bool keep_scores_;
  const int64_t splits_, block_row_, sample_row_, moment_rows_;
  size_t bytes_;
  A *moments_, *slope_, *offset_, *rows_, *folded_;
  T* packed_;
};

}  // namespace

template <typename T>
size_t SaoCpuWorkspaceBytes(const SaoProblem& problem, int threads) {
  return SaoRun<T>(problem, CpuIsa::kPortable, threads, nullptr).bytes();
}

template <typename T>
void RunSaoCpu(const SaoProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace) {
  SaoRun<T>(problem, isa, parallel.threads, workspace).Run(parallel);
}

template size_t SaoCpuWorkspaceBytes<float>(const SaoProblem&, int);
template size_t SaoCpuWorkspaceBytes<double>(const SaoProblem&, int);
template size_t SaoCpuWorkspaceBytes<BFloat16>(const SaoProblem&, int);
template void RunSaoCpu<float>(const SaoProblem&, CpuIsa, const Parallel&, std::byte*);
template void RunSaoCpu<double>(const SaoProblem&, CpuIsa, const Parallel&, std::byte*);
template void RunSaoCpu<BFloat16>(const SaoProblem&, CpuIsa, const Parallel&, std::byte*);

}  // namespace saccade::kernels
