#include "kernels/inverted_residual/inverted_residual_cpu.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "kernels/common/arena.h"
#include "kernels/inverted_residual/inverted_residual_blocks.h"

namespace saccade::kernels {
namespace {

// Bytes of expanded and filtered rows of one thread, chosen so that they and the weights stay in the L2
// cache.
constexpr int64_t kCacheBytes = 256 * 1024;

template <typename T>
const InvertedResidualCode<T>& CodeFor([[maybe_unused]] CpuIsa isa) {
  if constexpr (std::is_same_v<T, float>) {
#if defined(__x86_64__)
    if (isa == CpuIsa::kAvx2) return InvertedResidualAvx2Code();
    if (isa == CpuIsa::kAvx512) return InvertedResidualAvx512Code();
#endif
    return InvertedResidualPortableCode();
  } else {
#if defined(__x86_64__)
    return InvertedResidualAvx512BFloat16Code();
#else
    __builtin_trap();  // Programming error: this processor does not multiply bfloat16.
#endif
  }
}

template <typename T>
class InvertedResidualRun {
 public:
  InvertedResidualRun(const InvertedResidualProblem& problem, CpuIsa isa, int threads, std::byte* base)
      : p_(problem),
        layers_(problem.weights.layers),
        code_(CodeFor<T>(isa)),
        row_((problem.width + 2) * layers_.filtered_row()),
        projected_row_(problem.out_width() * layers_.projected_row()),
        bands_(std::min<int64_t>(threads / std::gcd(std::max<int64_t>(problem.batch, 1), int64_t{threads}),
                                 problem.out_height())),
        step_(StepOf(problem)),
        slots_((step_ - 1) * layers_.stride + 3) {
    Arena arena(base);
    rings_ = arena.Take<float>(threads * (slots_ + 1) * row_);
    projected_ = arena.Take<T>(threads * step_ * projected_row_);
    bytes_ = arena.bytes();
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) {
    parallel.run(p_.batch * bands_, 1, [this](int64_t i, int64_t end, int thread) {
      for (; i < end; ++i) {
        const int64_t band = i % bands_;
        Band(i / bands_, p_.out_height() * band / bands_, p_.out_height() * (band + 1) / bands_, thread);
      }
    });
  }

 private:
  // How many rows of outputs are made at a time.
  int64_t StepOf(const InvertedResidualProblem& problem) const {
    const auto bytes = [&](int64_t step) {
      return ((step - 1) * layers_.stride + 3) * row_ * static_cast<int64_t>(sizeof(float)) +
             step * projected_row_ * static_cast<int64_t>(sizeof(T));
    };
    const int64_t most = DivideUp(problem.out_height(), bands_);
    int64_t step = 1;
    while (step < most && bytes(step + 1) <= kCacheBytes) ++step;
    return DivideUp(most, DivideUp(most, step));
  }

  // The rows of one thread's scratch memory that hold what is filtered, with a position of zeros on each
  // side.
  float* RingRow(int64_t y, int thread) const { return rings_ + (thread * (slots_ + 1) + y % slots_) * row_; }
  float* ZeroRow(int thread) const { return rings_ + (thread * (slots_ + 1) + slots_) * row_; }

  // The row of inputs y of a sample in `map`, which has so many channels.
  const T* InputRow(const void* map, int64_t channels, int64_t sample, int64_t y) const {
    return static_cast<const T*>(map) + (sample * p_.height + y) * p_.width * channels;
  }

  void Band(int64_t sample, int64_t begin, int64_t end, int thread) {
    const int64_t filtered = layers_.filtered_row();
    std::memset(ZeroRow(thread), 0, row_ * sizeof(float));
    for (int64_t slot = 0; slot < slots_; ++slot) {
      std::memset(RingRow(slot, thread), 0, filtered * sizeof(float));
      std::memset(RingRow(slot, thread) + (p_.width + 1) * filtered, 0, filtered * sizeof(float));
    }
    int64_t next = std::max<int64_t>(begin * layers_.stride - 1, 0);
    for (int64_t row = begin; row < end; row += step_) {
      const int64_t last = std::min(row + step_, end);
      const int64_t needed = std::min((last - 1) * layers_.stride + 2, p_.height);
      Fill(sample, next, needed, thread);
      next = std::max(next, needed);
      for (int64_t y = row; y < last; ++y) Filter(sample, y, y - row, thread);
      Project(sample, row, last, thread);
    }
  }

  // Makes the rows [begin, end) of what is filtered.
  void Fill(int64_t sample, int64_t begin, int64_t end, int thread) {
    const int64_t filtered = layers_.filtered_row();
    if (layers_.expanded > 0) {
      ForPanels(InvertedResidualLayers::Padded(layers_.expanded) / kChannelUnit,
                [&](int64_t first, int64_t units) {
                  for (int64_t y = begin; y < end; ++y) {
                    code_.expand(InputRow(p_.x, layers_.inputs, sample, y), layers_.inputs, p_.width,
                                 p_.weights.expand, first, units, /*whole_units=*/true,
                                 {.data = RingRow(y, thread) + filtered, .row = filtered, .relu6 = true});
                  }
                });
    }
    if (layers_.kept == 0) return;
    for (int64_t y = begin; y < end; ++y) {
      CopyChannels(InputRow(p_.kept, layers_.kept, sample, y), layers_.kept, p_.width,
                   RingRow(y, thread) + filtered + InvertedResidualLayers::Padded(layers_.expanded),
                   filtered);
    }
  }

  // Copies positions with `channels` channels to rows of scratch memory, and pads them with zeros.
  template <typename To>
  void CopyChannels(const T* from, int64_t channels, int64_t positions, To* to, int64_t to_row) const {
    const int64_t padding = InvertedResidualLayers::Padded(channels) - channels;
    for (int64_t p = 0; p < positions; ++p) {
      for (int64_t c = 0; c < channels; ++c) to[p * to_row + c] = To{from[p * channels + c]};
      if (padding > 0) std::memset(to + p * to_row + channels, 0, padding * sizeof(To));
    }
  }

  T* Projected(int64_t at, int thread) const { return projected_ + (thread * step_ + at) * projected_row_; }

  // Filters row y of the outputs, into the projected row number `at`, and adds what stands beside it.
  void Filter(int64_t sample, int64_t y, int64_t at, int thread) {
    const float* rows[3];
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t from = y * layers_.stride + i - 1;
      rows[i] = from >= 0 && from < p_.height ? RingRow(from, thread) : ZeroRow(thread);
    }
    T* to = Projected(at, thread);
    code_.filter(rows, layers_.filtered_row(), p_.weights.filter, p_.weights.filter_bias, layers_.stride,
                 p_.out_width(), to, layers_.projected_row());
    if (layers_.beside == 0) return;
    const T* beside =
        static_cast<const T*>(p_.beside) + (sample * p_.out_height() + y) * p_.out_width() * layers_.beside;
    CopyChannels(beside, layers_.beside, p_.out_width(), to + layers_.filtered_row(),
                 layers_.projected_row());
  }

  // Makes the rows [begin, end) of the outputs of what was filtered.
  void Project(int64_t sample, int64_t begin, int64_t end, int thread) {
    const int64_t first_output = (sample * p_.out_height() + begin) * p_.out_width() * layers_.outputs;
    const T* skipped = static_cast<const T*>(p_.skipped);
    const ProductOutput<T> out{.data = static_cast<T*>(p_.out) + first_output,
                               .row = layers_.outputs,
                               .added = skipped == nullptr ? nullptr : skipped + first_output};
    ForPanels(InvertedResidualLayers::Padded(layers_.outputs) / kChannelUnit,
              [&](int64_t first, int64_t units) {
                code_.project(Projected(0, thread), layers_.projected_row(), (end - begin) * p_.out_width(),
                              p_.weights.project, first, units,
                              /*whole_units=*/false, out);
              });
  }

  const InvertedResidualProblem& p_;
  const InvertedResidualLayers layers_;
  const InvertedResidualCode<T>& code_;
  const int64_t row_;            // of what is filtered
  const int64_t projected_row_;  // of all positions of a row
  const int64_t bands_;          // of rows, into which a sample is split
  const int64_t step_;
  const int64_t slots_;
  size_t bytes_ = 0;
  float* rings_ = nullptr;
  T* projected_ = nullptr;
};

}  // namespace

template <typename T>
std::vector<T> PackProduct(const float* weight, int64_t outputs, int64_t inputs) {
  constexpr int64_t kTogether = std::is_same_v<T, float> ? 1 : 2;
  const int64_t padded = InvertedResidualLayers::Padded(outputs);
  std::vector<T> packed(static_cast<size_t>(padded * inputs), T{0.0F});
  ForPanels(padded / kChannelUnit, [&](int64_t first, int64_t units) {
    T* panel = packed.data() + first * kChannelUnit * inputs;
    const int64_t begin = first * kChannelUnit;
    const int64_t end = std::min(begin + units * kChannelUnit, outputs);
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t k = 0; k < inputs; ++k) {
        panel[(k / kTogether * units * kChannelUnit + n - begin) * kTogether + k % kTogether] =
            T{weight[n * inputs + k]};
      }
    }
  });
  return packed;
}

template <typename T>
size_t InvertedResidualCpuWorkspaceBytes(const InvertedResidualProblem& problem, int threads) {
  return InvertedResidualRun<T>(problem, CpuIsa::kPortable, threads, nullptr).bytes();
}

template <typename T>
void RunInvertedResidualCpu(const InvertedResidualProblem& problem, CpuIsa isa, const Parallel& parallel,
                            std::byte* workspace) {
  InvertedResidualRun<T>(problem, isa, parallel.threads, workspace).Run(parallel);
}

template std::vector<float> PackProduct<float>(const float*, int64_t, int64_t);
template std::vector<BFloat16> PackProduct<BFloat16>(const float*, int64_t, int64_t);
template size_t InvertedResidualCpuWorkspaceBytes<float>(const InvertedResidualProblem&, int);
template size_t InvertedResidualCpuWorkspaceBytes<BFloat16>(const InvertedResidualProblem&, int);
template void RunInvertedResidualCpu<float>(const InvertedResidualProblem&, CpuIsa, const Parallel&,
                                            std::byte*);
template void RunInvertedResidualCpu<BFloat16>(const InvertedResidualProblem&, CpuIsa, const Parallel&,
                                               std::byte*);

}  // namespace saccade::kernels
