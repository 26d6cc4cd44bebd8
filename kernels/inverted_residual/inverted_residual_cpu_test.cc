// Compares the CPU code, for every instruction set that this processor supports, with the three convolutions
// in float64.
#include "kernels/inverted_residual/inverted_residual_cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "kernels/common/testing/below_tensors.h"
#include "kernels/inverted_residual/inverted_residual_testing.h"

namespace saccade::kernels {
namespace {

using Config = InvertedResidualTestConfig;

// Every kind of module; sides that are multiples of no block of positions, one position, rows that do not fit
// in the cache together, channels that fill no vector.
std::vector<Config> Configs() {
  return {
      {.layers = {.inputs = 16, .expanded = 96, .outputs = 16}, .skips = true},
      {.height = 9, .width = 10, .layers = {.inputs = 16, .expanded = 96, .outputs = 24, .stride = 2}},
      {.batch = 3,
       .height = 8,
       .width = 8,
       .layers = {.inputs = 24, .expanded = 144, .outputs = 32, .stride = 2}},
      {.batch = 2, .height = 5, .width = 13, .layers = {.kept = 32, .outputs = 16}},
      {.height = 6, .width = 11, .layers = {.kept = 24, .outputs = 20, .stride = 2}},
      {.batch = 2,
       .height = 6,
       .width = 5,
       .layers = {.inputs = 16, .expanded = 80, .kept = 16, .outputs = 16},
       .skips = true},
      {.height = 6, .width = 5, .layers = {.inputs = 12, .expanded = 60, .kept = 12, .outputs = 40}},
      {.batch = 2,
       .height = 9,
       .width = 9,
       .layers = {.inputs = 16, .expanded = 80, .beside = 16, .outputs = 16},
       .skips = true},
      {.height = 9,
       .width = 9,
       .layers = {.inputs = 24, .expanded = 120, .beside = 24, .outputs = 72, .stride = 2}},
      {.height = 1, .width = 1, .layers = {.inputs = 8, .expanded = 48, .outputs = 8}, .skips = true},
      {.height = 2, .width = 1, .layers = {.inputs = 8, .expanded = 48, .outputs = 8, .stride = 2}},
      {.height = 5, .width = 6, .layers = {.inputs = 7, .expanded = 30, .outputs = 9}},
      {.height = 40, .width = 61, .layers = {.inputs = 32, .expanded = 576, .outputs = 160}},
  };
}

// The arrays of one problem with random values, and the expected result.
template <typename T>
class TestCase {
 public:
  TestCase(const Config& config, unsigned seed) : config_(config), layers_(config.layers), random_(seed) {
    const int64_t positions = config.positions();
    x_ = Map(positions * layers_.inputs);
    kept_ = Map(positions * layers_.kept);
    beside_ = Map(config_.out_positions() * layers_.beside);
    skipped_ = Map(config.skips ? config_.out_positions() * layers_.outputs : 0);
    expand_ = Weights(layers_.expanded * layers_.inputs, layers_.inputs);
    expand_bias_ = Weights(InvertedResidualLayers::Padded(layers_.expanded), 4);
    std::fill(expand_bias_.begin() + layers_.expanded, expand_bias_.end(), 0.0F);
    filter_ = Weights(9 * layers_.filtered_row(), 9);
    filter_bias_ = Weights(layers_.filtered_row(), 4);
    project_ = Weights(layers_.outputs * layers_.projected_row(), layers_.filtered_row());
    project_bias_ = Weights(InvertedResidualLayers::Padded(layers_.outputs), 4);
    ClearPadding();
    packed_expand_ = PackProduct<T>(expand_.data(), layers_.expanded, layers_.inputs);
    packed_project_ = PackProduct<T>(project_.data(), layers_.outputs, layers_.projected_row());
    out_.assign(static_cast<size_t>(config_.out_positions() * layers_.outputs),
                T{std::numeric_limits<float>::quiet_NaN()});
  }

  InvertedResidualProblem Problem() {
    InvertedResidualProblem p;
    p.weights.layers = layers_;
    if (layers_.expanded > 0) {
      p.weights.expand = {packed_expand_.data(), expand_bias_.data(), layers_.inputs, layers_.expanded};
      p.x = x_.data();
    }
    p.weights.filter = filter_.data();
    p.weights.filter_bias = filter_bias_.data();
    p.weights.project = {packed_project_.data(), project_bias_.data(), layers_.projected_row(),
                         layers_.outputs};
    p.batch = config_.batch;
    p.height = config_.height;
    p.width = config_.width;
    p.kept = layers_.kept > 0 ? kept_.data() : nullptr;
    p.beside = layers_.beside > 0 ? beside_.data() : nullptr;
    p.skipped = config_.skips ? skipped_.data() : nullptr;
    p.out = out_.data();
    return p;
  }

  void Run(CpuIsa isa, int threads) {
    const InvertedResidualProblem problem = Problem();
    // Exactly as long as promised, and filled with NaN: all bits set is a NaN in every type.
    std::vector<std::byte> workspace(InvertedResidualCpuWorkspaceBytes<T>(problem, threads), std::byte{0xff});
    RunInvertedResidualCpu<T>(problem, isa, PlainThreads(threads), workspace.data());
  }

  // The largest error, relative to the root of the mean square of the result.
  double Error() const {
    double worst = 0;
    double squares = 0;
    for (int64_t b = 0; b < config_.batch; ++b) {
      for (int64_t y = 0; y < config_.out_height(); ++y) {
        for (int64_t x = 0; x < config_.out_width(); ++x) {
          const std::vector<double> projected = ProjectedRow(b, y, x);
          for (int64_t n = 0; n < layers_.outputs; ++n) {
            const int64_t at =
                ((b * config_.out_height() + y) * config_.out_width() + x) * layers_.outputs + n;
            double sum = project_bias_[n] + (config_.skips ? Value(skipped_[at]) : 0);
            for (int64_t k = 0; k < layers_.projected_row(); ++k)
              sum += projected[k] * Rounded(project_[n * layers_.projected_row() + k]);
            const double error = std::abs(Value(out_[at]) - sum);
            worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
            squares += sum * sum;
          }
        }
      }
    }
    return worst / std::sqrt(squares / static_cast<double>(out_.size()));
  }

  const std::vector<T>& out() const { return out_; }
  std::vector<T>& x() { return layers_.expanded > 0 ? x_ : kept_; }

 private:
  static double Value(T value) { return static_cast<double>(static_cast<float>(value)); }
  // A weight of a product as the code has it.
  static double Rounded(float weight) { return Value(T{weight}); }

  std::vector<T> Map(int64_t count) {
    std::vector<T> map;
    for (int64_t i = 0; i < count; ++i) map.push_back(T{normal_(random_)});
    return map;
  }
  std::vector<float> Weights(int64_t count, int64_t terms) {
    std::vector<float> weights;
    for (int64_t i = 0; i < count; ++i)
      weights.push_back(2 * normal_(random_) / std::sqrt(static_cast<float>(terms)));
    return weights;
  }

  // Whether a column of a filtered row stands for a channel.
  bool IsFiltered(int64_t column) const {
    const int64_t kept = column - InvertedResidualLayers::Padded(layers_.expanded);
    return kept < 0 ? column < layers_.expanded : kept < layers_.kept;
  }
  void ClearPadding() {
    const int64_t row = layers_.filtered_row();
    for (int64_t c = 0; c < row; ++c) {
      if (IsFiltered(c)) continue;
      for (int64_t i = 0; i < 9; ++i) filter_[i * row + c] = 0;
      filter_bias_[c] = 0;
    }
    for (int64_t n = 0; n < layers_.outputs; ++n) {
      for (int64_t k = 0; k < layers_.projected_row(); ++k) {
        if (k < row ? !IsFiltered(k) : k - row >= layers_.beside)
          project_[n * layers_.projected_row() + k] = 0;
      }
    }
  }

  // The input of the filter at a position of a sample, for one column of a filtered row.
  double Filtered(int64_t b, int64_t y, int64_t x, int64_t column) const {
    if (y < 0 || x < 0 || y >= config_.height || x >= config_.width || !IsFiltered(column)) return 0;
    const int64_t position = (b * config_.height + y) * config_.width + x;
    const int64_t kept = column - InvertedResidualLayers::Padded(layers_.expanded);
    if (kept >= 0) return Value(kept_[position * layers_.kept + kept]);
    double sum = expand_bias_[column];
    for (int64_t k = 0; k < layers_.inputs; ++k)
      sum += Value(x_[position * layers_.inputs + k]) * Rounded(expand_[column * layers_.inputs + k]);
    return std::clamp(sum, 0.0, 6.0);
  }

  std::vector<double> ProjectedRow(int64_t b, int64_t y, int64_t x) const {
    std::vector<double> row;
    for (int64_t c = 0; c < layers_.filtered_row(); ++c) {
      double sum = filter_bias_[c];
      for (int64_t i = 0; i < 9; ++i) {
        sum += filter_[i * layers_.filtered_row() + c] *
               Filtered(b, y * layers_.stride + i / 3 - 1, x * layers_.stride + i % 3 - 1, c);
      }
      row.push_back(std::clamp(sum, 0.0, 6.0));
    }
    row.resize(static_cast<size_t>(layers_.projected_row()));
    const int64_t position = (b * config_.out_height() + y) * config_.out_width() + x;
    for (int64_t k = 0; k < layers_.beside; ++k)
      row[layers_.filtered_row() + k] = Value(beside_[position * layers_.beside + k]);
    return row;
  }

  const Config config_;
  const InvertedResidualLayers layers_;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
  std::vector<T> x_, kept_, beside_, skipped_, packed_expand_, packed_project_, out_;
  std::vector<float> expand_, expand_bias_, filter_, filter_bias_, project_, project_bias_;
};

class InvertedResidualCpu : public testing::TestWithParam<std::tuple<Config, CpuIsa>> {
 protected:
  const Config& config() const { return std::get<0>(GetParam()); }
  CpuIsa isa() const { return std::get<1>(GetParam()); }
};

TEST_P(InvertedResidualCpu, MatchesTheConvolutions) {
  TestCase<float> test(config(), 1);
  test.Run(isa(), 2);
  EXPECT_LE(test.Error(), 1e-5);
}

TEST_P(InvertedResidualCpu, MatchesTheConvolutionsInBFloat16) {
  if (isa() != CpuIsa::kAvx512 || !MultipliesBFloat16() || config().layers.inputs % 2 != 0)
    GTEST_SKIP() << "there is no code for bfloat16";
  TestCase<BFloat16> test(config(), 2);
  test.Run(isa(), 2);
  // Values are rounded three times, to 8 bits each; the largest of thousands of errors of a sum.
  EXPECT_LE(test.Error(), 3e-2);
}

TEST_P(InvertedResidualCpu, DoesNotDependOnTheNumberOfThreads) {
  TestCase<float> first(config(), 3);
  first.Run(isa(), 1);
  for (const int threads : {2, 3, 7}) {
    TestCase<float> again(config(), 3);
    again.Run(isa(), threads);
    EXPECT_TRUE(SameBits(first.out(), again.out())) << threads << " threads";
  }
}

TEST_P(InvertedResidualCpu, DoesNotDependOnTheRestOfTheBatch) {
  Config several = config();
  several.batch = std::max<int64_t>(several.batch, 2);
  TestCase<float> first(several, 4);
  first.Run(isa(), 2);
  TestCase<float> changed(several, 4);
  // All samples but the first one.
  std::vector<float>& x = changed.x();
  std::fill(x.begin() + static_cast<int64_t>(x.size()) / several.batch, x.end(), 1e30F);
  changed.Run(isa(), 2);
  const auto end = static_cast<int64_t>(first.out().size()) / several.batch;
  EXPECT_TRUE(std::equal(first.out().begin(), first.out().begin() + end, changed.out().begin()));
}

TEST_P(InvertedResidualCpu, ANanIsSeenInTheResult) {
  TestCase<float> test(config(), 5);
  test.x().front() = std::numeric_limits<float>::quiet_NaN();
  test.Run(isa(), 1);
  EXPECT_TRUE(std::isnan(test.out().front()));
}

INSTANTIATE_TEST_SUITE_P(Configs, InvertedResidualCpu,
                         testing::Combine(testing::ValuesIn(Configs()),
                                          testing::ValuesIn(InstructionSets())));

}  // namespace
}  // namespace saccade::kernels
