// Compares the code for maps of bytes with the three convolutions, computed one element after the other with
// the same roundings: every byte is the same.
#include "kernels/inverted_residual/inverted_residual_int8_cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>
#include <vector>

#include "kernels/common/testing/below_tensors.h"
#include "kernels/inverted_residual/inverted_residual_testing.h"

namespace saccade::kernels {
namespace {

struct Config {
  InvertedResidualTestConfig sizes;
  // Zero points of the module's input, of what is filtered, of what is projected and of the result.
  int32_t zeros[4] = {0, 0, 0, 0};
  bool bfloat16 = false;
  // Whether what is kept beside expanded channels is on their grid; if not, it is on that of the input.
  bool kept_on_filtered_grid = false;
  // Whether numbers reach the limit of ReLU6 on grids that hold more than that.
  bool reaches_six = false;
};

std::ostream& operator<<(std::ostream& out, const Config& c) {
  return out << c.sizes << " zeros=" << c.zeros[0] << "," << c.zeros[1] << "," << c.zeros[2] << ","
             << c.zeros[3] << " bfloat16=" << c.bfloat16
             << " kept_on_filtered_grid=" << c.kept_on_filtered_grid << " reaches_six=" << c.reaches_six;
}

// Every kind of module; channels that fill one to four vectors and those that fill none, rows of one
// position, maps whose rows do not fit in the cache together.
std::vector<Config> Configs() {
  return {
      {.sizes = {.layers = {.inputs = 16, .expanded = 96, .outputs = 16}, .skips = true},
       .zeros = {121, 0, 0, 99}},
      {.sizes = {.height = 9,
                 .width = 10,
                 .layers = {.inputs = 16, .expanded = 96, .outputs = 24, .stride = 2}},
       .zeros = {0, 0, 0, 130}},
      {.sizes = {.batch = 3,
                 .height = 8,
                 .width = 8,
                 .layers = {.inputs = 24, .expanded = 144, .outputs = 32, .stride = 2}},
       .zeros = {100, 7, 0, 0}},
      {.sizes = {.batch = 2, .height = 5, .width = 13, .layers = {.kept = 32, .outputs = 16}},
       .zeros = {0, 0, 0, 90}},
      {.sizes = {.height = 6, .width = 11, .layers = {.kept = 24, .outputs = 20, .stride = 2}},
       .zeros = {33, 0, 5, 90}},
      {.sizes = {.batch = 2,
                 .height = 6,
                 .width = 5,
                 .layers = {.inputs = 16, .expanded = 80, .kept = 16, .outputs = 16},
                 .skips = true},
       .zeros = {111, 128, 0, 121}},
      {.sizes = {.batch = 2,
                 .height = 6,
                 .width = 5,
                 .layers = {.inputs = 16, .expanded = 80, .kept = 16, .outputs = 16, .stride = 2}},
       .zeros = {111, 85, 0, 121},
       .kept_on_filtered_grid = true},
      {.sizes = {.height = 6,
                 .width = 5,
                 .layers = {.inputs = 12, .expanded = 60, .kept = 12, .outputs = 40}},
       .zeros = {128, 60, 0, 121}},
      {.sizes = {.batch = 2,
                 .height = 9,
                 .width = 9,
                 .layers = {.inputs = 16, .expanded = 80, .beside = 16, .outputs = 16},
                 .skips = true},
       .zeros = {128, 0, 100, 121}},
      {.sizes = {.height = 9,
                 .width = 9,
                 .layers = {.inputs = 24, .expanded = 120, .beside = 24, .outputs = 72, .stride = 2}},
       .zeros = {128, 0, 100, 121},
       .bfloat16 = true},
      {.sizes =
           {.height = 1, .width = 1, .layers = {.inputs = 8, .expanded = 48, .outputs = 8}, .skips = true},
       .zeros = {9, 0, 0, 0}},
      {.sizes = {.height = 2,
                 .width = 1,
                 .layers = {.inputs = 8, .expanded = 48, .outputs = 8, .stride = 2}}},
      {.sizes =
           {.height = 1, .width = 29, .layers = {.inputs = 4, .expanded = 30, .outputs = 57}, .skips = true}},
      {.sizes = {.layers = {.inputs = 16, .expanded = 80, .outputs = 24}},
       .zeros = {121, 0, 31, 99},
       .reaches_six = true},
      {.sizes = {.height = 9,
                 .width = 8,
                 .layers = {.inputs = 16, .expanded = 80, .outputs = 24, .stride = 2}},
       .zeros = {121, 31, 0, 99},
       .reaches_six = true},
      {.sizes = {.height = 40, .width = 61, .layers = {.inputs = 32, .expanded = 576, .outputs = 160}},
       .zeros = {128, 31, 40, 128}},
  };
}

class TestCase {
 public:
  TestCase(const Config& config, unsigned seed)
      : config_(config), sizes_(config.sizes), layers_(config.sizes.layers), random_(seed) {
    w_.layers = layers_;
    w_.filtered = {.scale = config.reaches_six ? 0.05F : 0.0217F, .zero = config.zeros[1]};
    w_.projected = {.scale = config.reaches_six ? 0.05F : 0.0193F, .zero = config.zeros[2]};
    w_.out = {.scale = 0.0371F, .zero = config.zeros[3]};
    x_grid_ = {.scale = 0.0311F, .zero = config.zeros[0]};
    kept_grid_ = config.kept_on_filtered_grid ? w_.filtered : x_grid_;
    const int64_t positions = sizes_.positions();
    x_ = Bytes(positions * layers_.inputs);
    kept_ = Bytes(positions * layers_.kept);
    for (int64_t i = 0; i < sizes_.out_positions() * layers_.beside; ++i) {
      beside_bfloat16_.push_back(BFloat16{normal_(random_)});
      beside_.push_back(config.bfloat16 ? static_cast<float>(beside_bfloat16_.back()) : normal_(random_));
    }
    skipped_ = Bytes(sizes_.skips ? sizes_.out_positions() * layers_.outputs : 0);
    expand_ = RandomLayer(layers_.expanded, layers_.inputs, 0.5F);
    filter_ = RandomLayer(w_.filtered_channels(), 9, 0.6F);
    project_ = RandomLayer(layers_.outputs, w_.projected_channels(), 0.5F);
    PackAll();
  }

  const std::vector<uint8_t>& Run(int threads) { return RunFirst(sizes_.batch, threads); }

  // Computes the first `batch` samples alone.
  const std::vector<uint8_t>& RunFirst(int64_t batch, int threads) {
    Int8InvertedResidualProblem p{
        .weights = w_, .batch = batch, .height = sizes_.height, .width = sizes_.width};
    p.x = layers_.expanded > 0 ? x_.data() : nullptr;
    p.x_grid = x_grid_;
    p.kept = layers_.kept > 0 ? kept_.data() : nullptr;
    p.kept_grid = kept_grid_;
    if (layers_.beside > 0) {
      if (config_.bfloat16) {
        p.beside_bfloat16 = beside_bfloat16_.data();
      } else {
        p.beside = beside_.data();
      }
    }
    p.skipped = sizes_.skips ? skipped_.data() : nullptr;
    p.skipped_grid = kSkippedGrid;
    out_.assign(batch * sizes_.out_height() * sizes_.out_width() * layers_.outputs, 0);
    p.out = out_.data();
    // Exactly as long as promised, and filled with what must not matter.
    std::vector<std::byte> workspace(Int8InvertedResidualCpuWorkspaceBytes(p, threads), std::byte{0xa5});
    RunInt8InvertedResidualCpu(p, CpuIsa::kAvx512, PlainThreads(threads), workspace.data());
    return out_;
  }

  std::vector<uint8_t> Expected() const {
    std::vector<uint8_t> filtered = Expanded();
    std::vector<uint8_t> projected = Filtered(filtered);
    if (config_.reaches_six) {
      EXPECT_EQ(*std::max_element(filtered.begin(), filtered.end()), Rounded(6, w_.filtered));
      EXPECT_EQ(*std::max_element(projected.begin(), projected.end()), Rounded(6, w_.projected));
    }
    std::vector<uint8_t> out;
    const int64_t channels = w_.projected_channels();
    for (int64_t p = 0; p < sizes_.out_positions(); ++p) {
      for (int64_t n = 0; n < layers_.outputs; ++n) {
        int32_t sum = 0;
        for (int64_t k = 0; k < channels; ++k)
          sum += projected[p * channels + k] * project_.weight[n * channels + k];
        const float bias = BiasFor(project_, n, w_.projected);
        float number = Number(sum, project_.scale[n], bias, w_.projected.scale);
        if (sizes_.skips) {
          const auto other = static_cast<float>(skipped_[p * layers_.outputs + n] - kSkippedGrid.zero);
          number = std::fma(other, kSkippedGrid.scale, number);
        }
        out.push_back(Rounded(number, w_.out));
      }
    }
    return out;
  }

  // Gives all samples but the first one other numbers, in every map.
  void ChangeOtherSamples() {
    Change(x_, uint8_t{255});
    Change(kept_, uint8_t{255});
    Change(beside_, 7.0F);
    Change(beside_bfloat16_, BFloat16{7.0F});
    Change(skipped_, uint8_t{255});
  }

 private:
  static constexpr ByteGrid kSkippedGrid{.scale = 0.0287F, .zero = 117};

  struct Layer {
    int64_t outputs = 0;
    int64_t inputs = 0;
    std::vector<int8_t> weight, packed;
    std::vector<float> scale, bias, packed_scale, packed_bias;
    std::vector<double> packed_sums;
    std::vector<int32_t> filter_sums;

    int32_t Sum(int64_t n) const {
      int32_t sum = 0;
      for (int64_t k = 0; k < inputs; ++k) sum += weight[n * inputs + k];
      return sum;
    }
  };

  template <typename T>
  void Change(std::vector<T>& map, T value) const {
    std::fill(map.begin() + static_cast<int64_t>(map.size()) / sizes_.batch, map.end(), value);
  }

  ByteGrid FilteredGrid() const { return layers_.expanded > 0 ? w_.filtered : kept_grid_; }

  std::vector<uint8_t> Bytes(int64_t count) {
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(random_()));
    return bytes;
  }

  Layer RandomLayer(int64_t outputs, int64_t inputs, float size) {
    Layer layer;
    layer.outputs = outputs;
    layer.inputs = inputs;
    for (int64_t i = 0; i < outputs * inputs; ++i)
      layer.weight.push_back(static_cast<int8_t>(static_cast<int64_t>(random_() % 255) - 127));
    for (int64_t n = 0; n < outputs; ++n) {
      layer.scale.push_back(size / 127 / std::sqrt(static_cast<float>(inputs)) *
                            (1 + std::abs(normal_(random_))));
      const float bias = normal_(random_);
      layer.bias.push_back(config_.reaches_six ? std::min(4 + bias, 6.0F) : 1 + bias);
    }
    return layer;
  }

  static void Pack(Layer& layer, const std::vector<int64_t>& order) {
    for (const int64_t n : order) {
      layer.packed_scale.push_back(n < 0 ? 0 : layer.scale[n]);
      layer.packed_bias.push_back(n < 0 ? 0 : layer.bias[n]);
      layer.packed_sums.push_back(n < 0 ? 0 : static_cast<double>(layer.Sum(n)) * layer.scale[n]);
      layer.filter_sums.push_back(n < 0 ? 0 : layer.Sum(n));
    }
  }

  static PackedInt8Product ProductOf(const Layer& layer) {
    return {.data = layer.packed.data(),
            .scale = layer.packed_scale.data(),
            .bias = layer.packed_bias.data(),
            .sums = layer.packed_sums.data(),
            .inputs = RoundUp(layer.inputs, 4),
            .outputs = layer.outputs};
  }

  void PackAll() {
    Pack(expand_, Int8ProductOrder(expand_.outputs));
    expand_.packed = PackInt8Product(expand_.weight.data(), expand_.outputs, expand_.inputs);
    if (layers_.expanded > 0) w_.expand = ProductOf(expand_);
    Pack(filter_, Int8FilterOrder(filter_.outputs));
    filter_.packed = PackInt8Filter(filter_.weight.data(), filter_.outputs);
    w_.filter = {.data = filter_.packed.data(),
                 .scale = filter_.packed_scale.data(),
                 .bias = filter_.packed_bias.data(),
                 .sums = filter_.filter_sums.data()};
    Pack(project_, Int8ProductOrder(project_.outputs));
    project_.packed = PackInt8Product(project_.weight.data(), project_.outputs, project_.inputs);
    w_.project = ProductOf(project_);
  }

  static float BiasFor(const Layer& layer, int64_t n, const ByteGrid& grid) {
    const double offset = static_cast<double>(grid.scale) * grid.zero;
    const double sum = static_cast<double>(layer.Sum(n)) * layer.scale[n];
    return static_cast<float>(std::fma(-offset, sum, static_cast<double>(layer.bias[n])));
  }
  static float Number(int32_t sum, float scale, float bias, float in_scale) {
    const float scaled = static_cast<float>(sum) * in_scale;
    const float weighted = scaled * scale;
    return weighted + bias;
  }
  static uint8_t Rounded(float number, const ByteGrid& grid) {
    const float steps = number * (1 / grid.scale);
    const float on_grid = steps + static_cast<float>(grid.zero);
    return static_cast<uint8_t>(std::nearbyint(std::clamp(on_grid, 0.0F, 255.0F)));
  }
  static uint8_t Relu6(float number, const ByteGrid& grid) {
    return Rounded(std::clamp(number, 0.0F, 6.0F), grid);
  }

  // Returns the map that the filter reads, [positions][channels].
  std::vector<uint8_t> Expanded() const {
    std::vector<uint8_t> map;
    for (int64_t p = 0; p < sizes_.positions(); ++p) {
      for (int64_t n = 0; n < layers_.expanded; ++n) {
        int32_t sum = 0;
        for (int64_t k = 0; k < layers_.inputs; ++k)
          sum += x_[p * layers_.inputs + k] * expand_.weight[n * layers_.inputs + k];
        const float bias = BiasFor(expand_, n, x_grid_);
        map.push_back(Relu6(Number(sum, expand_.scale[n], bias, x_grid_.scale), w_.filtered));
      }
      for (int64_t c = 0; c < layers_.kept; ++c) {
        const uint8_t byte = kept_[p * layers_.kept + c];
        const float number = static_cast<float>(byte - kept_grid_.zero) * kept_grid_.scale;
        map.push_back(FilteredGrid() == kept_grid_ ? byte : Rounded(number, FilteredGrid()));
      }
    }
    return map;
  }

  // Returns the map that the projection reads, [positions][channels].
  std::vector<uint8_t> Filtered(const std::vector<uint8_t>& from) const {
    std::vector<uint8_t> map;
    const int64_t channels = w_.filtered_channels();
    const ByteGrid grid = FilteredGrid();
    for (int64_t p = 0; p < sizes_.out_positions(); ++p) {
      const int64_t b = p / (sizes_.out_height() * sizes_.out_width());
      const int64_t y = p / sizes_.out_width() % sizes_.out_height();
      const int64_t x = p % sizes_.out_width();
      for (int64_t c = 0; c < channels; ++c) {
        int32_t sum = 0;
        for (int64_t i = 0; i < 9; ++i) {
          const int64_t row = y * layers_.stride + i / 3 - 1;
          const int64_t column = x * layers_.stride + i % 3 - 1;
          if (row < 0 || column < 0 || row >= sizes_.height || column >= sizes_.width) continue;
          const int64_t at = (b * sizes_.height + row) * sizes_.width + column;
          sum += (from[at * channels + c] - grid.zero) * filter_.weight[c * 9 + i];
        }
        map.push_back(Relu6(Number(sum, filter_.scale[c], filter_.bias[c], grid.scale), w_.projected));
      }
      for (int64_t k = 0; k < layers_.beside; ++k)
        map.push_back(Rounded(beside_[p * layers_.beside + k], w_.projected));
    }
    return map;
  }

  const Config config_;
  const InvertedResidualTestConfig sizes_;
  const InvertedResidualLayers layers_;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
  Int8InvertedResidualWeights w_;
  ByteGrid x_grid_, kept_grid_;
  std::vector<uint8_t> x_, kept_, skipped_, out_;
  std::vector<float> beside_;
  std::vector<BFloat16> beside_bfloat16_;
  Layer expand_, filter_, project_;
};

class Int8InvertedResidualCpu : public testing::TestWithParam<Config> {
 protected:
  void SetUp() override {
    if (!RunsInt8InvertedResidual()) GTEST_SKIP() << "this processor does not have AVX-512 VNNI";
  }
};

// How many bytes differ.
int64_t Differences(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  int64_t differences = 0;
  for (size_t i = 0; i < a.size(); ++i) differences += a[i] != b[i] ? 1 : 0;
  return differences;
}

TEST_P(Int8InvertedResidualCpu, IsTheThreeConvolutions) {
  TestCase test(GetParam(), 1);
  const std::vector<uint8_t> expected = test.Expected();
  EXPECT_EQ(Differences(test.Run(2), expected), 0) << "of " << expected.size();
  EXPECT_GT(*std::max_element(expected.begin(), expected.end()),
            *std::min_element(expected.begin(), expected.end()));
}

TEST_P(Int8InvertedResidualCpu, DoesNotDependOnTheNumberOfThreads) {
  TestCase first(GetParam(), 3);
  first.Run(1);
  for (const int threads : {2, 3, 7}) {
    TestCase again(GetParam(), 3);
    EXPECT_EQ(again.Run(threads), first.Run(1)) << threads << " threads";
  }
}

TEST_P(Int8InvertedResidualCpu, DoesNotDependOnTheRestOfTheBatch) {
  Config several = GetParam();
  several.sizes.batch = std::max<int64_t>(several.sizes.batch, 2);
  TestCase test(several, 4);
  const std::vector<uint8_t> alone = test.RunFirst(1, 2);
  const std::vector<uint8_t> together = test.Run(2);
  test.ChangeOtherSamples();
  const std::vector<uint8_t> beside_others = test.Run(2);
  ASSERT_EQ(together.size(), several.sizes.batch * alone.size());
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin()));
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), beside_others.begin()));
}

INSTANTIATE_TEST_SUITE_P(Configs, Int8InvertedResidualCpu, testing::ValuesIn(Configs()));

}  // namespace
}  // namespace saccade::kernels
