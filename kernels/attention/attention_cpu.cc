#include "kernels/attention/attention_cpu.h"

#include <algorithm>
#include <utility>

#include "kernels/attention/attention_context.h"
#include "kernels/attention/attention_pairs.h"
#include "kernels/common/dtype_dispatch.h"

namespace saccade::kernels {
namespace {

// Folds out_weight (W_v x + b_v) into one transform of x, if there is one head, and no more channels to
// attend to than before.
template <typename A>
class FoldedValues {
 public:
  FoldedValues(const AttentionProblem& p, const TileCode<A>& code, Arena* arena)
      : p_(p),
        code_(code),
        folds_(p.heads == 1 && p.out_weight != nullptr && p.v.weight != nullptr &&
               p.out_channels <= p.value_channels),
        columns_(p.v.channels + (p.v.bias == nullptr ? 0 : 1)),
        row_(RoundUp(columns_, kRowPadding)) {
    padded_ = arena->Take<A>(folds_ ? p.value_channels * row_ : 0);
    product_ = arena->Take<A>(folds_ ? p.out_channels * row_ : 0);
    weight_ = arena->Take<A>(folds_ ? p.out_channels * p.v.channels : 0);
    bias_ = arena->Take<A>(folds_ ? p.out_channels : 0);
  }

  // Returns the problem to solve; its weights are valid after Run(). While memory is only being measured,
  // they are the original ones, so that each is null exactly if it will be null later.
  AttentionProblem Problem() const {
    AttentionProblem folded = p_;
    if (!folds_) return folded;
    if (weight_ != nullptr) {
      folded.v.weight = weight_;
      folded.v.bias = p_.v.bias == nullptr ? nullptr : bias_;
    }
    folded.value_channels = p_.out_channels;
    folded.out_weight = nullptr;
    return folded;
  }

  void Run(const Parallel& parallel) {
    if (!folds_) return;
    const int64_t channels = p_.v.channels;
    const A* weight = static_cast<const A*>(p_.v.weight);
    for (int64_t r = 0; r < p_.value_channels; ++r) {
      std::copy_n(weight + r * channels, channels, padded_ + r * row_);
      if (p_.v.bias != nullptr) padded_[r * row_ + channels] = static_cast<const A*>(p_.v.bias)[r];
    }
    // Split by tiles of rows: each row is computed independently, so the result does not depend on the split.
    parallel.run(DivideUp(p_.out_channels, kTile), 1, [&](int64_t i, int64_t end, int) {
      for (; i < end; ++i) Rows(i * kTile, std::min((i + 1) * kTile, p_.out_channels));
    });
  }

 private:
  void Rows(int64_t begin, int64_t end) {
    const int64_t channels = p_.v.channels;
    const MatrixView<A> left{static_cast<const A*>(p_.out_weight) + begin * p_.value_channels,
                             p_.value_channels, 1};
    code_.product(end - begin, columns_, p_.value_channels, left, padded_, row_, product_ + begin * row_,
                  row_, false);
    for (int64_t r = begin; r < end; ++r) {
      std::copy_n(product_ + r * row_, channels, weight_ + r * channels);
      if (p_.v.bias != nullptr) bias_[r] = product_[r * row_ + channels];
    }
  }

  const AttentionProblem& p_;
  const TileCode<A>& code_;
  const bool folds_;
  const int64_t columns_, row_;
  A *padded_, *product_, *weight_, *bias_;
};

// Calls visit(run) for each order of computation that a sample of this problem may use. The runs share the
// same memory, one after the other.
template <typename A, typename Visit>
void ForRuns(const AttentionProblem& p, const TileCode<A>& code, int threads, std::byte* memory,
             const Visit& visit) {
  const bool mean = p.kind == AttentionKind::kMean;
  const int64_t max_positions = PositionsOf(p.extent);
  if (!mean || p.extent.valid != nullptr || AttentionTakesPairs(p, max_positions)) {
    AttentionPairs<A> run(p, code, threads, memory);
    visit(run);
  }
  if (mean && !AttentionTakesPairs(p, max_positions)) {
    AttentionContext<A> run(p, code, threads, memory);
    visit(run);
  }
}

template <typename A>
size_t WorkspaceBytes(const AttentionProblem& problem, int threads) {
  const TileCode<A>& code = TileCodeFor<A>(CpuIsa::kPortable);
  Arena arena(nullptr);
  const FoldedValues<A> values(problem, code, &arena);
  size_t bytes = 0;
  ForRuns<A>(values.Problem(), code, threads, nullptr,
             [&](const auto& run) { bytes = std::max(bytes, run.bytes()); });
  return arena.bytes() + bytes;
}

template <typename A>
void Run(const AttentionProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace) {
  const TileCode<A>& code = TileCodeFor<A>(isa);
  Arena arena(workspace);
  FoldedValues<A> values(problem, code, &arena);
  values.Run(parallel);
  const AttentionProblem folded = values.Problem();
  ForRuns<A>(folded, TileCodeFor<A>(isa, problem.dtype), parallel.threads, workspace + arena.bytes(),
             [&](auto& run) { run.Run(parallel); });
}

}  // namespace

size_t AttentionCpuWorkspaceBytes(const AttentionProblem& problem, int threads) {
  size_t bytes = 0;
  WithAccumulateType(problem.dtype,
                     [&]<typename A>(A /*zero*/) { bytes = WorkspaceBytes<A>(problem, threads); });
  return bytes;
}

void RunAttentionCpu(const AttentionProblem& problem, CpuIsa isa, const Parallel& parallel,
                     std::byte* workspace) {
  WithAccumulateType(problem.dtype,
                     [&]<typename A>(A /*zero*/) { Run<A>(problem, isa, parallel, workspace); });
}

}  // namespace saccade::kernels
