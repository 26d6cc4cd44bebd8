#include "kernels/inverted_residual/inverted_residual_int8_cpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/inverted_residual/inverted_residual_int8_blocks.h"
#include "kernels/inverted_residual/inverted_residual_rows.h"

namespace saccade::kernels {
namespace {

constexpr int64_t kInputsPerStep = 4;
constexpr int64_t kFilterTaps = 12;  // 3 columns of 3 rows and a zero

const Int8InvertedResidualCode& Code() {
#if defined(__x86_64__)
  return Int8InvertedResidualAvx512VnniCode();
#else
  __builtin_trap();  // Programming error: this processor does not sum products of bytes.
#endif
}

// To a grid, with ReLU6 or without an activation. (No byte stands for less than its grid's first number.)
Int8Rounding RoundingTo(const ByteGrid& from, const ByteGrid& to, bool relu6) {
  Int8Rounding rounding{.in_scale = from.scale, .inverse = 1 / to.scale, .zero = to.zero};
  if (!relu6) return rounding;
  rounding.low = to.zero;
  // Rounded as the numbers are, one operation after the other: each of them preserves the order of numbers.
  const float six = 6.0F * rounding.inverse;
  rounding.high = std::min(six + static_cast<float>(to.zero), 255.0F);
  return rounding;
}

class Int8InvertedResidualRun {
 public:
  Int8InvertedResidualRun(const Int8InvertedResidualProblem& problem, int threads, std::byte* base)
      : p_(problem),
        w_(problem.weights),
        filtered_grid_(w_.layers.expanded > 0 ? w_.filtered : problem.kept_grid),
        row_((problem.width + 2) * w_.filtered_row()),
        projected_row_(problem.out_width() * w_.projected_row()),
        plan_({.batch = problem.batch,
               .height = problem.height,
               .out_height = problem.out_height(),
               .stride = w_.layers.stride,
               .ring_row_bytes = row_,
               .projected_row_bytes = projected_row_},
              threads) {
    Arena arena(base);
    rings_ = arena.Take<uint8_t>(threads * (plan_.slots() + 1) * row_);
    projected_ = arena.Take<uint8_t>(threads * plan_.step() * projected_row_);
    expand_bias_ = arena.Take<float>(w_.expand.padded_outputs());
    project_bias_ = arena.Take<float>(w_.project.padded_outputs());
    bytes_ = arena.bytes();
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) {
    AccountForZero(w_.expand, p_.x_grid, expand_bias_);
    AccountForZero(w_.project, w_.projected, project_bias_);
    plan_.Run(parallel, *this);
  }

 private:
  friend InvertedResidualRows;

  // Without padding every output sees all weights, so the part of the inputs' zero is the same everywhere.
  static void AccountForZero(const PackedInt8Product& product, const ByteGrid& grid, float* bias) {
    if (grid.zero == 0) {
      std::copy_n(product.bias, product.padded_outputs(), bias);
      return;
    }
    const double offset = static_cast<double>(grid.scale) * grid.zero;
    for (int64_t n = 0; n < product.padded_outputs(); ++n)
      bias[n] = static_cast<float>(std::fma(-offset, product.sums[n], static_cast<double>(product.bias[n])));
  }

  // The rows of one thread's scratch memory that hold what is filtered, with a position of zeros on each
  // side.
  uint8_t* Ring(int thread) const { return rings_ + thread * (plan_.slots() + 1) * row_; }
  uint8_t* RingRow(int64_t y, int thread) const { return Ring(thread) + y % plan_.slots() * row_; }
  uint8_t* ZeroRow(int thread) const { return Ring(thread) + plan_.slots() * row_; }
  uint8_t* Projected(int64_t at, int thread) const {
    return projected_ + (thread * plan_.step() + at) * projected_row_;
  }

  void Start(int thread) {
    const int64_t position = w_.filtered_row();
    std::memset(ZeroRow(thread), filtered_grid_.zero, row_);
    for (int64_t slot = 0; slot < plan_.slots(); ++slot) {
      std::memset(RingRow(slot, thread), filtered_grid_.zero, position);
      std::memset(RingRow(slot, thread) + (p_.width + 1) * position, filtered_grid_.zero, position);
    }
  }

  // Makes the rows [begin, end) of what is filtered. Channels that only fill a row have bytes without a
  // meaning, and weights that are 0.
  void Fill(int64_t sample, int64_t begin, int64_t end, int thread) {
    const InvertedResidualLayers& layers = w_.layers;
    const int64_t position = w_.filtered_row();
    const Int8Rounding rounding = RoundingTo(p_.x_grid, filtered_grid_, /*relu6=*/true);
    for (int64_t panel = 0; panel < DivideUp(layers.expanded, kInt8Unit); ++panel) {
      for (int64_t y = begin; y < end; ++y) {
        Code().product(p_.x + (sample * p_.height + y) * p_.width * layers.inputs, layers.inputs, p_.width,
                       w_.expand, expand_bias_, panel,
                       {.data = RingRow(y, thread) + position,
                        .row = position,
                        .whole_vectors = true,
                        .rounding = rounding});
      }
    }
    if (layers.kept == 0) return;
    for (int64_t y = begin; y < end; ++y) {
      const uint8_t* from = p_.kept + (sample * p_.height + y) * p_.width * layers.kept;
      uint8_t* to = RingRow(y, thread) + position + layers.expanded;
      if (p_.kept_grid == filtered_grid_) {
        for (int64_t i = 0; i < p_.width; ++i)
          std::memcpy(to + i * position, from + i * layers.kept, layers.kept);
      } else {
        Code().round_bytes(from, p_.kept_grid, CopyTo(p_.width, layers.kept, filtered_grid_, to, position));
      }
    }
  }

  static Int8Copy CopyTo(int64_t positions, int64_t channels, const ByteGrid& grid, uint8_t* to,
                         int64_t row) {
    return {.positions = positions, .channels = channels, .to_grid = grid, .to = to, .to_row = row};
  }

  void Filter(int64_t sample, int64_t y, int64_t at, int thread) {
    const InvertedResidualLayers& layers = w_.layers;
    Int8FilterRow row{.rows = {},
                      .row = w_.filtered_row(),
                      .zero = filtered_grid_.zero,
                      .stride = layers.stride,
                      .positions = p_.out_width(),
                      .rounding = RoundingTo(filtered_grid_, w_.projected, /*relu6=*/true),
                      .out = Projected(at, thread),
                      .out_row = w_.projected_row()};
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t from = y * layers.stride + i - 1;
      row.rows[i] = from >= 0 && from < p_.height ? RingRow(from, thread) : ZeroRow(thread);
    }
    Code().filter(w_.filter, row);
    if (layers.beside == 0) return;
    const int64_t first = (sample * p_.out_height() + y) * p_.out_width() * layers.beside;
    const Int8Copy copy =
        CopyTo(p_.out_width(), layers.beside, w_.projected, row.out + w_.filtered_channels(), row.out_row);
    if (p_.beside != nullptr) {
      Code().round_floats(p_.beside + first, copy);
    } else {
      Code().round_bfloat16(p_.beside_bfloat16 + first, copy);
    }
  }

  void Project(int64_t sample, int64_t begin, int64_t end, int thread) {
    const int64_t outputs = w_.layers.outputs;
    const int64_t first = (sample * p_.out_height() + begin) * p_.out_width() * outputs;
    const Int8Output out{.data = p_.out + first,
                         .row = outputs,
                         .rounding = RoundingTo(w_.projected, w_.out, /*relu6=*/false),
                         .added = p_.skipped == nullptr ? nullptr : p_.skipped + first,
                         .added_grid = p_.skipped_grid};
    for (int64_t panel = 0; panel < DivideUp(outputs, kInt8Unit); ++panel) {
      Code().product(Projected(0, thread), w_.projected_row(), (end - begin) * p_.out_width(), w_.project,
                     project_bias_, panel, out);
    }
  }

  const Int8InvertedResidualProblem& p_;
  const Int8InvertedResidualWeights& w_;
  const ByteGrid filtered_grid_;
  const int64_t row_;            // bytes of what is filtered
  const int64_t projected_row_;  // bytes of all positions of a row
  const InvertedResidualRows plan_;
  size_t bytes_ = 0;
  uint8_t* rings_ = nullptr;
  uint8_t* projected_ = nullptr;
  float* expand_bias_ = nullptr;
  float* project_bias_ = nullptr;
};

}  // namespace

bool RunsInt8InvertedResidual() {
#if defined(__x86_64__)
  return BestCpuIsa() == CpuIsa::kAvx512 && MultipliesInt8();
#else
  return false;
#endif
}

std::vector<int64_t> Int8ProductOrder(int64_t outputs) {
  std::vector<int64_t> order;
  for (int64_t first = 0; first < outputs; first += kInt8Unit) {
    const int64_t padded = std::min(InvertedResidualLayers::Padded(outputs - first), kInt8Unit);
    for (int64_t i = 0; i < padded; ++i) {
      const int64_t n = first + (padded == kInt8Unit ? Int8Order(i) : i);
      order.push_back(n < outputs ? n : -1);
    }
  }
  return order;
}

std::vector<int64_t> Int8FilterOrder(int64_t channels) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < RoundUp(channels, kInt8Unit); ++i) {
    const int64_t c = i / kInt8Unit * kInt8Unit + Int8Order(i % kInt8Unit);
    order.push_back(c < channels ? c : -1);
  }
  return order;
}

std::vector<int8_t> PackInt8Product(const int8_t* weight, int64_t outputs, int64_t inputs) {
  const std::vector<int64_t> order = Int8ProductOrder(outputs);
  const int64_t padded = RoundUp(inputs, kInputsPerStep);
  std::vector<int8_t> packed(order.size() * padded);
  for (int64_t i = 0; i < static_cast<int64_t>(order.size()); ++i) {
    if (order[i] < 0) continue;
    const int64_t first = i / kInt8Unit * kInt8Unit;
    const int64_t panel = std::min<int64_t>(static_cast<int64_t>(order.size()) - first, kInt8Unit);
    for (int64_t k = 0; k < inputs; ++k) {
      packed[first * padded + (k / kInputsPerStep * panel + i - first) * kInputsPerStep +
             k % kInputsPerStep] = weight[order[i] * inputs + k];
    }
  }
  return packed;
}

std::vector<int8_t> PackInt8Filter(const int8_t* weight, int64_t channels) {
  const std::vector<int64_t> order = Int8FilterOrder(channels);
  std::vector<int8_t> packed(order.size() * kFilterTaps);
  for (int64_t i = 0; i < static_cast<int64_t>(order.size()); ++i) {
    if (order[i] < 0) continue;
    int8_t* block = packed.data() + i / kInt8Unit * kInt8Unit * kFilterTaps;
    for (int64_t y = 0; y < 3; ++y) {
      for (int64_t x = 0; x < 3; ++x)
        block[(x * kInt8Unit + i % kInt8Unit) * 4 + y] = weight[order[i] * 9 + y * 3 + x];
    }
  }
  return packed;
}

size_t Int8InvertedResidualCpuWorkspaceBytes(const Int8InvertedResidualProblem& problem, int threads) {
  return Int8InvertedResidualRun(problem, threads, nullptr).bytes();
}

void RunInt8InvertedResidualCpu(const Int8InvertedResidualProblem& problem, CpuIsa /*isa*/,
                                const Parallel& parallel, std::byte* workspace) {
  Int8InvertedResidualRun(problem, parallel.threads, workspace).Run(parallel);
}

}  // namespace saccade::kernels
