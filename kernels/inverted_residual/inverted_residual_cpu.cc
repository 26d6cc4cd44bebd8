#include "kernels/inverted_residual/inverted_residual_cpu.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/common/arena.h"
#include "kernels/inverted_residual/inverted_residual_blocks.h"
#include "kernels/inverted_residual/inverted_residual_rows.h"

namespace saccade::kernels {
namespace {

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
        plan_(SizesOf(problem), threads) {
    Arena arena(base);
    rings_ = arena.Take<float>(threads * (plan_.slots() + 1) * row_);
    projected_ = arena.Take<T>(threads * plan_.step() * projected_row_);
    bytes_ = arena.bytes();
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) { plan_.Run(parallel, *this); }

 private:
  friend InvertedResidualRows;

  InvertedResidualRowSizes SizesOf(const InvertedResidualProblem& problem) const {
    return {.batch = problem.batch,
            .height = problem.height,
            .out_height = problem.out_height(),
            .stride = layers_.stride,
            .ring_row_bytes = row_ * static_cast<int64_t>(sizeof(float)),
            .projected_row_bytes = projected_row_ * static_cast<int64_t>(sizeof(T))};
  }

  // The rows of one thread's scratch memory that hold what is filtered, with a position of zeros on each
  // side.
  float* Ring(int thread) const { return rings_ + thread * (plan_.slots() + 1) * row_; }
  float* RingRow(int64_t y, int thread) const { return Ring(thread) + y % plan_.slots() * row_; }
  float* ZeroRow(int thread) const { return Ring(thread) + plan_.slots() * row_; }

  // The row of inputs y of a sample in `map`, which has so many channels.
  const T* InputRow(const void* map, int64_t channels, int64_t sample, int64_t y) const {
    return static_cast<const T*>(map) + (sample * p_.height + y) * p_.width * channels;
  }

  void Start(int thread) {
    const int64_t filtered = layers_.filtered_row();
    std::memset(ZeroRow(thread), 0, row_ * sizeof(float));
    for (int64_t slot = 0; slot < plan_.slots(); ++slot) {
      std::memset(RingRow(slot, thread), 0, filtered * sizeof(float));
      std::memset(RingRow(slot, thread) + (p_.width + 1) * filtered, 0, filtered * sizeof(float));
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

  T* Projected(int64_t at, int thread) const {
    return projected_ + (thread * plan_.step() + at) * projected_row_;
  }

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
  const InvertedResidualRows plan_;
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
