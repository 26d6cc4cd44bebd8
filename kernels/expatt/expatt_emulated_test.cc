// Compares the CUDA kernels of expatt.cuh, compiled by g++ and run on the CPU, with the formulas in float64.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/device/testing/emulated_test.h"
#include "kernels/expatt/expatt.cuh"
#include "kernels/expatt/expatt_map.cuh"
#include "kernels/expatt/expatt_testing.h"

namespace saccade::kernels {
namespace {

struct ExpattKernels {
  using Config = ExpattTestConfig;
  template <typename T>
  using Case = ExpattTestCase<T>;

  static bool Fits(const ExpattProblem& problem) { return ExpattCudaFits(problem); }
  static int64_t Floats(const ExpattProblem& problem) {
    return ExpattCuda(problem, nullptr).FloatsOfWorkspace();
  }
  template <typename T>
  static void Run(const ExpattProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunExpattCuda<T>(problem, workspace, launch);
  }
};
using ExpattEmulated = EmulatedTest<ExpattKernels>;

TEST_P(ExpattEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(ExpattEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(ExpattEmulated, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(ExpattEmulated, DoesNotDependOnTheOrderOfThreads) { DoesNotDependOnTheOrderOfThreads<float>(); }

INSTANTIATE_TEST_SUITE_P(Configs, ExpattEmulated, testing::ValuesIn(ExpattTestConfigs()));

// The operator passes sigma's address in device memory instead of its value.
TEST(ExpattEmulatedTest, ReadsSigmaOnTheDevice) {
  for (const ExpattKind kind : {ExpattKind::kGaussian, ExpattKind::kExponentialEuclidean}) {
    ExpattTestCase<float> test({.kind = kind, .sigma = 0.25}, 5);
    const float sigma = 0.25f;
    ExpattProblem problem = test.Problem();
    problem.device_sigma = &sigma;
    problem.sigma = std::numeric_limits<double>::quiet_NaN();
    RunEmulated<ExpattKernels, float>(problem, 1);
    EXPECT_LE(test.Error(), kMaxEmulatedError<float>);
  }
}

// Several blocks in each dimension of every product.
TEST(ExpattEmulatedTest, ManyBlocks) {
  for (const ExpattKind kind : {ExpattKind::kGaussian, ExpattKind::kLinear}) {
    ExpattTestCase<float> test({.kind = kind,
                                .batch = 2,
                                .channels = 35,
                                .out_channels = 37,
                                .height = 5,
                                .width = 70,
                                .valid = {5, 70, 3, 66}},
                               6);
    RunEmulated<ExpattKernels, float>(test.Problem(), 1);
    EXPECT_LE(test.Error(), kMaxEmulatedError<float>);
  }
}

// Maps of several steps of keys, several blocks of rows, both sources of distances, and keys that are read
// eight at a time.
TEST(ExpattEmulatedTest, WholeMaps) {
  for (const ExpattTestConfig& config :
       {ExpattTestConfig{.batch = 3, .channels = 33, .height = 16, .width = 17},
        ExpattTestConfig{.batch = 2, .channels = 40, .height = 16, .width = 18, .channels_last = true},
        ExpattTestConfig{.channels = 1, .height = 2, .width = 2817, .valid = {1, 150}},
        ExpattTestConfig{.batch = 2, .channels = 5, .height = 2, .width = 2824, .valid = {1, 3, 2, 70}}}) {
    for (const ExpattKind kind : {ExpattKind::kCosine, ExpattKind::kExponentialEuclidean}) {
      ExpattTestConfig of_kind = config;
      of_kind.kind = kind;
      ExpattTestCase<float> in_float32(of_kind, 7);
      RunEmulated<ExpattKernels, float>(in_float32.Problem(), 1);
      EXPECT_LE(in_float32.Error(), kMaxEmulatedError<float>) << of_kind;
      ExpattTestCase<DeviceBFloat16> in_bfloat16(of_kind, 7);
      RunEmulated<ExpattKernels, DeviceBFloat16>(in_bfloat16.Problem(), 1);
      EXPECT_LE(in_bfloat16.Error(), kMaxEmulatedError<DeviceBFloat16>) << of_kind;
    }
  }
}

// Chips without bfloat16 tensor cores multiply 16-bit maps in float32, a block's rows in two passes.
TEST(ExpattEmulatedTest, SixteenBitMapsWithoutTensorCores) {
  ExpattTestCase<DeviceBFloat16> test(
      {.kind = ExpattKind::kLinear, .batch = 2, .channels = 45, .height = 9, .width = 16}, 8);
  const ExpattProblem p = test.Problem();
  const ExpattDirect direct(p, p.x, p.out, nullptr, nullptr, true);
  EmulatedLaunch{1}(
      ExpattDirectKernel<DeviceBFloat16, DeviceBFloat16, DeviceBFloat16, ExpattSource::kOwnTable, false>,
      static_cast<unsigned>(direct.position_blocks * 2), 1, ExpattDirect::kThreads, 9 * 16 * sizeof(float),
      direct);
  EXPECT_LE(test.Error(), kMaxEmulatedError<DeviceBFloat16>);
}

// Runs one sample of 3 x `height` x `width` values among others, in a map of full_height x full_width
// positions with NaN outside the sample; returns its valid results.
template <typename T>
std::vector<T> RunWithin(ExpattKind kind, int64_t height, int64_t width, int64_t full_height,
                         int64_t full_width, int64_t batch, int64_t sample) {
  constexpr int64_t kChannels = 3;
  const T nan(std::numeric_limits<float>::quiet_NaN());
  std::vector<T> x(batch * kChannels * full_height * full_width, nan), out(x.size(), nan), results;
  std::vector<int64_t> valid;
  std::mt19937 random(3);
  for (int64_t b = 0; b < batch; ++b) valid.insert(valid.end(), {height, width});
  const auto at = [&](int64_t b, int64_t c, int64_t y, int64_t w) {
    return ((b * kChannels + c) * full_height + y) * full_width + w;
  };
  const auto for_values = [&](int64_t b, const auto& visit) {
    for (int64_t c = 0; c < kChannels; ++c) {
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t w = 0; w < width; ++w) visit(at(b, c, y, w));
      }
    }
  };
  std::normal_distribution<float> normal;
  for_values(sample, [&](int64_t i) { x[i] = T(normal(random)); });
  for (int64_t b = 0; b < batch; ++b) {
    if (b != sample) for_values(b, [&](int64_t i) { x[i] = T(normal(random)); });
  }
  ExpattProblem p;
  p.kind = kind;
  p.batch = batch;
  p.channels = p.map_channels = p.out_channels = kChannels;
  p.dtype = kDtypeOf<T>;
  if (height == full_height && width == full_width) valid.clear();
  p.extent = ExtentOf({full_height, full_width}, valid);
  const int64_t plane = full_height * full_width;
  p.x = {x.data(), kChannels * plane, plane, {0, full_width, 1}};
  p.out = {out.data(), kChannels * plane, plane, {0, full_width, 1}};
  RunEmulated<ExpattKernels, T>(p, 1);
  for_values(sample, [&](int64_t i) { results.push_back(out[i]); });
  return results;
}

template <typename T>
void DoesNotDependOnBatchOrPadding() {
  for (const ExpattKind kind : kExpattKinds) {
    const std::vector<T> alone = RunWithin<T>(kind, 9, 16, 9, 16, 1, 0);
    EXPECT_TRUE(SameBits(RunWithin<T>(kind, 9, 16, 9, 16, 24, 22), alone)) << static_cast<int>(kind);
    EXPECT_TRUE(SameBits(RunWithin<T>(kind, 9, 16, 12, 21, 2, 1), alone)) << static_cast<int>(kind);
    EXPECT_TRUE(SameBits(RunWithin<T>(kind, 9, 16, 60, 100, 1, 0), alone)) << static_cast<int>(kind);
  }
}

// Microseconds of both products on an H200, for batches of 1, 8 and 32 gaussian maps. Those of the direct
// product and of the factors for 56x56 float32 maps are in docs/benchmarks/kernels-gpu.md; those of the
// factors for the other maps are in its version of commit 0640d07c, when every separable map took them.
struct MeasuredProducts {
  Dtype dtype;
  int64_t positions;
  std::vector<double> direct, factors;
};

TEST(ExpattEmulatedTest, TakesTheProductThatTakesLessTime) {
  const std::vector<MeasuredProducts> all = {
      {Dtype::kFloat32, 14 * 14, {12.7, 12.9, 25.8}, {19.8, 21.3, 34.5}},
      {Dtype::kFloat32, 28 * 28, {29.2, 38.9, 103.9}, {27.1, 28.6, 38.7}},
      {Dtype::kBFloat16, 14 * 14, {20.1, 22.2, 25.0}, {19.7, 21.3, 34.9}},
      {Dtype::kBFloat16, 28 * 28, {16.3, 19.6, 41.6}, {27.0, 28.4, 39.2}},
      {Dtype::kBFloat16, 56 * 56, {43.7, 64.1, 187.7}, {37.8, 42.0, 78.6}}};
  for (const ExpattKind kind : {ExpattKind::kGaussian, ExpattKind::kExponentialManhattan}) {
    for (const MeasuredProducts& measured : all) {
      double direct = 0, factors = 0;
      for (const double time : measured.direct) direct += time;
      for (const double time : measured.factors) factors += time;
      EXPECT_EQ(measured.positions <= ExpattDirect::MaxPositions(kind, measured.dtype), direct < factors)
          << measured.positions << " positions of type " << static_cast<int>(measured.dtype);
    }
  }
}

// A separable map that the factors apply: more positions than the direct product takes.
TEST(ExpattEmulatedTest, Factors) {
  for (const ExpattKind kind : {ExpattKind::kGaussian, ExpattKind::kExponentialManhattan}) {
    ExpattTestCase<float> test({.kind = kind,
                                .batch = 3,
                                .channels = 2,
                                .height = 13,
                                .width = 22,
                                .valid = {13, 22, 12, 21, 12, 22}},
                               9);
    RunEmulated<ExpattKernels, float>(test.Problem(), 1);
    EXPECT_LE(test.Error(), kMaxEmulatedError<float>);
    ExpattTestCase<float> whole({.kind = kind, .channels = 2, .height = 30, .width = 37}, 9);
    RunEmulated<ExpattKernels, float>(whole.Problem(), 1);
    EXPECT_LE(whole.Error(), kMaxEmulatedError<float>);
    EXPECT_TRUE(
        SameBits(RunWithin<float>(kind, 12, 22, 12, 22, 1, 0), RunWithin<float>(kind, 12, 22, 13, 30, 2, 1)));
  }
  ExpattTestCase<DeviceBFloat16> test({.kind = ExpattKind::kGaussian,
                                       .batch = 2,
                                       .channels = 2,
                                       .height = 32,
                                       .width = 33,
                                       .valid = {32, 33, 10, 32}},
                                      9);
  RunEmulated<ExpattKernels, DeviceBFloat16>(test.Problem(), 1);
  EXPECT_LE(test.Error(), kMaxEmulatedError<DeviceBFloat16>);
}

// A stored map holds the entries that a block would compute, and its product adds them in the same order.
TEST(ExpattEmulatedTest, AStoredMapGivesTheSameBits) {
  for (const ExpattTestConfig& config :
       {ExpattTestConfig{.batch = 3, .channels = 33, .height = 16, .width = 17},
        ExpattTestConfig{.batch = 2, .channels = 40, .height = 16, .width = 18, .channels_last = true},
        ExpattTestConfig{
            .channels = 6, .map_channels = 4, .out_channels = 6, .bias = true, .height = 1, .width = 1},
        ExpattTestConfig{
            .batch = 2, .channels = 5, .map_channels = 70, .out_channels = 6, .height = 7, .width = 5}}) {
    for (const ExpattKind kind :
         {ExpattKind::kLinear, ExpattKind::kExponentialEuclidean, ExpattKind::kGaussian}) {
      ExpattTestConfig of_kind = config;
      of_kind.kind = kind;
      ExpattTestCase<DeviceBFloat16> computed(of_kind, 7);
      RunEmulated<ExpattKernels, DeviceBFloat16>(computed.Problem(), 1);
      EXPECT_LE(computed.Error(), kMaxEmulatedError<DeviceBFloat16>) << of_kind;

      ExpattTestCase<DeviceBFloat16> stored(of_kind, 7);
      ExpattProblem problem = stored.Problem();
      const int64_t bytes = ExpattMapBytes(problem);
      ASSERT_GT(bytes, 0) << of_kind;
      // Memory of whole vectors, with a NaN everywhere.
      std::vector<ExpattVector> map(static_cast<size_t>(bytes) / sizeof(ExpattVector),
                                    ExpattVector{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}});
      ASSERT_EQ(bytes % static_cast<int64_t>(sizeof(ExpattVector)), 0);
      RunExpattMapOnDevice<DeviceBFloat16>(problem, map.data(), EmulatedLaunch{2});
      problem.map = map.data();
      RunEmulated<ExpattKernels, DeviceBFloat16>(problem, 3);
      EXPECT_TRUE(SameBits(stored.out(), computed.out())) << of_kind;
    }
  }
}

TEST(ExpattEmulatedTest, StoresMapsThatTheHostKnows) {
  ExpattTestCase<DeviceHalf> test({.kind = ExpattKind::kExponentialEuclidean, .height = 56, .width = 56}, 1);
  const ExpattProblem known = test.Problem();
  EXPECT_EQ(ExpattMapBytes(known), 98 * 25 * 8192 + 98 * 128);
  const auto bytes_with = [&](auto change) {
    ExpattProblem p = known;
    change(p);
    return ExpattMapBytes(p);
  };
  const int64_t valid[2] = {4, 4};
  const float sigma = 1;
  EXPECT_EQ(bytes_with([&](auto& p) { p.extent.valid = valid; }), 0);
  EXPECT_EQ(bytes_with([&](auto& p) { p.device_sigma = &sigma; }), 0);
  EXPECT_GT(bytes_with([&](auto& p) {
              p.device_sigma = &sigma;
              p.kind = ExpattKind::kLinear;
            }),
            0);
  EXPECT_EQ(bytes_with([](auto& p) { p.dtype = Dtype::kFloat32; }), 0);
  EXPECT_EQ(bytes_with([](auto& p) { p.kind = ExpattKind::kConstant; }), 0);
  // This one has factors.
  EXPECT_EQ(bytes_with([](auto& p) { p.kind = ExpattKind::kGaussian; }), 0);
  EXPECT_EQ(bytes_with([](auto& p) { p.extent.size[1] = 57; }), 0);
}

TEST(ExpattEmulatedTest, DoesNotDependOnBatchOrPaddingInFloat32) { DoesNotDependOnBatchOrPadding<float>(); }
TEST(ExpattEmulatedTest, DoesNotDependOnBatchOrPaddingInBFloat16) {
  DoesNotDependOnBatchOrPadding<DeviceBFloat16>();
}

// The mean, the product with the whole map, that with the factors, and the matrices before and after the map.
template <typename T>
void OffsetsHave64Bits() {
  const ExpattTestConfig mean = {
      .kind = ExpattKind::kConstant, .batch = 2, .channels = 6, .height = 5, .width = 16};
  ExpattTestConfig whole = mean;
  whole.kind = ExpattKind::kGaussian;
  ExpattTestConfig factors = whole;
  factors.height = 65;
  ExpattTestConfig matrices = mean;
  matrices.kind = ExpattKind::kLinear;
  matrices.map_channels = 4;
  matrices.out_channels = 6;
  matrices.bias = true;
  matrices.valid = {5, 16, 4, 13};
  for (ExpattTestConfig config : {mean, whole, factors, matrices}) {
    for (const bool channels_last : {false, true}) {
      config.channels_last = channels_last;
      ExpattTestCase<T> test(config, 5);
      FarMapsGiveTheSameBits<ExpattKernels, T>(test.Problem(), [](FarMaps<T>& maps, ExpattProblem& p) {
        maps.Move(p.x, p.channels, p.extent);
        maps.MoveResult(p.out, p.out_channels, p.extent);
      });
    }
  }
}
TEST(ExpattEmulatedTest, OffsetsHave64BitsInFloat32) { OffsetsHave64Bits<float>(); }
TEST(ExpattEmulatedTest, OffsetsHave64BitsInBFloat16) { OffsetsHave64Bits<DeviceBFloat16>(); }

}  // namespace
}  // namespace saccade::kernels
