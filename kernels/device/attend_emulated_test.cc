// Compares the attention core's kernels, compiled by g++ and run on the CPU, with the formulas in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/device/attend.cuh"
#include "kernels/device/testing/attend_testing.h"
#include "kernels/device/testing/emulated_test.h"

namespace saccade::kernels {
namespace {

struct AttendKernels {
  using Config = AttendTestConfig;
  template <typename T>
  using Case = AttendTestCase<T>;

  static bool Fits(const AttendProblem& problem) { return AttendFits(problem); }
  static int64_t Floats(const AttendProblem& problem) { return AttendWorkspaceFloats(problem); }
  template <typename T>
  static void Run(const AttendProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunAttend<T>(problem, workspace, launch);
  }
};
using AttendEmulated = EmulatedTest<AttendKernels>;
using AttendEmulatedSome = EmulatedTest<AttendKernels>;

// The code path of chips before sm_80.
struct KernelsWithoutTensorCores : AttendKernels {
  template <typename T>
  static void Run(const AttendProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunAttend<T, /*kTensorCores=*/false>(problem, workspace, launch);
  }
};
using AttendWithoutTensorCores = EmulatedTest<KernelsWithoutTensorCores>;

std::vector<AttendTestConfig> Configs() {
  return {
      {.depth = 1, .value_channels = 1, .queries = {1}, .keys = {1}},
      {.batch = 2,
       .heads = 2,
       .depth = 5,
       .value_channels = 3,
       .queries = {7, 11},
       .keys = {13},
       .biases = true},
      // Many tiles of keys for few queries: split keys, with and without heads and padding.
      {.depth = 70, .value_channels = 65, .queries = {9}, .keys = {17, 19}, .layout = "wppp"},
      {.batch = 3,
       .depth = 24,
       .value_channels = 24,
       .queries = {6},
       .keys = {13, 31},
       .valid_keys = {13, 31, 7, 5, 0, 9},
       .layout = "wgcf"},
      {.batch = 3,
       .heads = 2,
       .depth = 8,
       .value_channels = 9,
       .queries = {9, 23},
       .keys = {9, 23},
       .valid_queries = {9, 23, 4, 17, 0, 0},
       .valid_keys = {9, 23, 4, 17, 0, 0},
       .layout = "pcgp",
       .epilogue = true},
      {.depth = 20,
       .value_channels = 40,
       .queries = {5},
       .keys = {3, 4, 25},
       .layout = "wcpc",
       .softmax = false,
       .scale = 0.3f,
       .biases = true},
      {.batch = 3,
       .depth = 6,
       .value_channels = 70,
       .queries = {5},
       .keys = {200},
       .valid_keys = {200, 0, 70},
       .layout = "wccf",
       .softmax = false,
       .mean = true,
       .biases = true},
      // Groups within a tile, two groups per tile, and groups of several tiles.
      {.depth = 33,
       .value_channels = 33,
       .keys = {96},
       .layout = "pwwp",
       .biases = true,
       .key_group = 8,
       .epilogue = true},
      {.depth = 9, .value_channels = 20, .keys = {72}, .layout = "cwwc", .key_group = 24},
      // Groups whose keys belong to other threads than the tile's.
      {.depth = 9, .value_channels = 20, .keys = {66}, .layout = "cwwc", .key_group = 6},
      {.depth = 9, .value_channels = 20, .queries = {5}, .keys = {54}, .layout = "pwwp", .key_group = 3},
      {.depth = 9, .value_channels = 70, .queries = {3, 5}, .keys = {140}, .layout = "gwwg", .key_group = 70},
      // More than 256 value channels: logits through the workspace, and recomputed.
      {.batch = 2,
       .heads = 2,
       .depth = 80,
       .value_channels = 260,
       .queries = {7},
       .keys = {3, 50},
       .valid_keys = {3, 50, 2, 40},
       .layout = "wppp",
       .epilogue = true},
      {.batch = 2,
       .depth = 300,
       .value_channels = 300,
       .queries = {3, 5},
       .keys = {12},
       .valid_queries = {2, 3, 3, 5},
       .layout = "pwwp",
       .scale = 0.05f,
       .biases = true},
      // Enough channels that their sum is split into planes.
      {.depth = 545,
       .value_channels = 257,
       .queries = {5},
       .keys = {3, 5},
       .layout = "wpcf",
       .scale = 0.04f,
       .biases = true},
      {.depth = 2, .value_channels = 257, .queries = {70}, .keys = {70}, .layout = "cccc"},
      // Given logits.
      {.batch = 2,
       .heads = 2,
       .value_channels = 20,
       .queries = {10},
       .keys = {5, 30},
       .layout = "cppf",
       .logits = true},
      {.batch = 2,
       .value_channels = 6,
       .queries = {6, 12},
       .keys = {16},
       .valid_queries = {6, 12, 5, 3},
       .layout = "pwwp",
       .logits = true,
       .scale = 1},
      {.value_channels = 16,
       .queries = {3, 9},
       .keys = {130},
       .layout = "cpwc",
       .logits = true,
       .softmax = false,
       .mean = true,
       .scale = 0.1f},
  };
}

TEST_P(AttendEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(AttendEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(AttendEmulatedSome, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(AttendEmulatedSome, DoesNotDependOnTheOrderOfThreads) {
  DoesNotDependOnTheOrderOfThreads<DeviceHalf>();
}
TEST_P(AttendWithoutTensorCores, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }

INSTANTIATE_TEST_SUITE_P(Configs, AttendEmulated, testing::ValuesIn(Configs()));
INSTANTIATE_TEST_SUITE_P(Configs, AttendEmulatedSome, testing::ValuesIn(EveryThirdUnlessLong(Configs())));
INSTANTIATE_TEST_SUITE_P(Configs, AttendWithoutTensorCores,
                         testing::ValuesIn(EveryThirdUnlessLong(Configs())));

// Returns a random valid configuration.
AttendTestConfig RandomConfig(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  const auto chance = [&](unsigned of) { return random() % of == 0; };
  AttendTestConfig c;
  c.batch = one_of({1, 2, 3});
  c.heads = one_of({1, 1, 2, 3});
  c.depth = one_of({1, 3, 16, 31, 33, 66});
  c.value_channels = one_of({1, 5, 16, 63, 65, 130});
  c.queries = chance(3) ? std::vector<int64_t>{one_of({1, 3, 65, 90})}
                        : std::vector<int64_t>{one_of({1, 4, 9}), one_of({1, 5, 13})};
  c.keys = chance(3) ? std::vector<int64_t>{one_of({1, 2, 64, 65, 300})}
                     : std::vector<int64_t>{one_of({1, 2}), one_of({3, 7}), one_of({1, 5, 21})};
  c.layout = {"pcgw"[random() % 4], "pcgw"[random() % 4], "pcgw"[random() % 4], "pcgf"[random() % 4]};
  c.softmax = !chance(3);
  c.mean = !c.softmax && chance(2);
  // All samples share the same weights, so only maps have padding.
  const auto valid = [&](const std::vector<int64_t>& size, bool wanted) {
    std::vector<int64_t> extents;
    for (int64_t i = 0; wanted && i < c.batch * static_cast<int64_t>(size.size()); ++i) {
      extents.push_back(static_cast<int64_t>(random()) % (size[i % size.size()] + 1));
    }
    return extents;
  };
  c.valid_queries = valid(c.queries, c.layout[0] != 'w' && chance(2));
  c.valid_keys = valid(c.keys, c.layout[1] != 'w' && c.layout[2] != 'w' && chance(2));
  c.scale = 1.0f / std::sqrt(static_cast<float>(c.depth));
  c.biases = chance(2);
  c.epilogue = chance(2);
  return c;
}

TEST(AttendEmulatedTest, RandomProblems) {
  std::mt19937 random(7);
  for (unsigned i = 0; i < (IsLongForm() ? 60U : 20U); ++i) {
    const AttendTestConfig config = RandomConfig(random);
    AttendTestCase<float> exact(config, i);
    RunEmulated<AttendKernels, float>(exact.Problem(), i);
    EXPECT_LE(exact.Error(), kMaxEmulatedError<float>) << config;
    AttendTestCase<DeviceHalf> half(config, i);
    RunEmulated<AttendKernels, DeviceHalf>(half.Problem(), i);
    EXPECT_LE(half.Error(), kMaxEmulatedError<DeviceHalf>) << config;
  }
}

// So many tiles of queries that the keys are not split, and a block adds up several tiles of keys.
TEST(AttendEmulatedTest, ABlockMayHaveSeveralTilesOfKeys) {
  const AttendTestConfig config = {
      .depth = 4, .value_channels = 4, .queries = {8512}, .keys = {130}, .scale = 0.5f};
  AttendTestCase<float> exact(config, 1);
  RunEmulated<AttendKernels, float>(exact.Problem(), 1);
  EXPECT_LE(exact.Error(), kMaxEmulatedError<float>);
}

// A sample's result must not depend on the size it is padded to, nor on the rest of the batch.
TEST(AttendEmulatedTest, APaddedSampleHasTheBitsItHasAlone) {
  // With many query tiles, and with few, which splits the keys.
  for (const bool few : {false, true}) {
    AttendTestConfig config = {.batch = 2,
                               .depth = 12,
                               .value_channels = 20,
                               .queries = {14, 20},
                               .keys = {14, 20},
                               .valid_queries = {14, 20, 11, 17},
                               .valid_keys = {14, 20, 11, 17},
                               .layout = "ppcp"};
    if (few) {
      config.queries = {9};
      config.valid_queries = {};
      config.layout[0] = 'w';
    }
    AttendTestCase<float> padded(config, 9);
    RunEmulated<AttendKernels, float>(padded.Problem(), 1);
    AttendTestCase<float> alone(config, 9);
    AttendProblem problem = alone.Problem();
    problem.batch = 1;
    for (Extent* extent : {&problem.queries, &problem.keys}) {
      if (extent->valid == nullptr) continue;
      extent->size[1] = 11;
      extent->size[2] = 17;
      extent->valid = nullptr;
    }
    for (Rows* rows : {&problem.q, &problem.k, &problem.v}) {
      rows->data = static_cast<const float*>(rows->data) + rows->batch_stride;
    }
    problem.out.data = static_cast<float*>(problem.out.data) + problem.out.batch_stride;
    RunEmulated<AttendKernels, float>(problem, 3);
    int compared = 0;
    for (size_t i = problem.out.batch_stride; i < alone.out().size(); ++i) {
      if (std::isnan(alone.out()[i])) continue;
      EXPECT_EQ(alone.out()[i], padded.out()[i]);
      ++compared;
    }
    EXPECT_EQ(compared, (few ? 9 : 11 * 17) * 20);
  }
}

// Whether the logits of more than 256 value channels go through the workspace, and in how many planes,
// depends on the padded extents. The bits must not.
TEST(AttendEmulatedTest, APaddedSampleWithManyChannelsHasTheBitsItHasAlone) {
  struct Size {
    int64_t depth, map, padded;
  };
  for (const auto& [depth, map, padded] : {Size{16, 5, 7}, Size{520, 7, 33}, Size{560, 7, 33}}) {
    const auto config = [&, depth_ = depth](int64_t side, const std::vector<int64_t>& valid) {
      return AttendTestConfig{.depth = depth_,
                              .value_channels = 257,
                              .queries = {side, side},
                              .keys = {side, side},
                              .valid_queries = valid,
                              .valid_keys = valid,
                              .layout = "pppp",
                              .scale = 0.05f,
                              .biases = true};
    };
    AttendTestCase<float> wide(config(padded, {map, map}), 9);
    AttendTestCase<float> alone(config(padded, {map, map}), 9);
    AttendProblem problem = alone.Problem();
    for (Extent* extent : {&problem.queries, &problem.keys}) {
      extent->size[1] = extent->size[2] = map;
      extent->valid = nullptr;
    }
    ASSERT_TRUE(LogitsThroughWorkspace(problem));
    ASSERT_TRUE(!LogitsThroughWorkspace(wide.Problem()) ||
                StoredPlanes(wide.Problem()) != StoredPlanes(problem));
    RunEmulated<AttendKernels, float>(wide.Problem(), 1);
    RunEmulated<AttendKernels, float>(problem, 3);
    int compared = 0;
    for (size_t i = 0; i < alone.out().size(); ++i) {
      if (std::isnan(alone.out()[i])) continue;
      EXPECT_EQ(alone.out()[i], wide.out()[i]);
      ++compared;
    }
    EXPECT_EQ(compared, map * map * 257);
  }
}

TEST(AttendEmulatedTest, TheWorkspaceHoldsSeveralPlanesOnlyForFewTiles) {
  AttendProblem p;
  p.batch = 8;
  p.depth = p.value_channels = 2048;
  p.queries = RowExtent(64);
  p.keys = RowExtent(256 * 256);
  EXPECT_EQ(AttendWorkspaceFloats(p) - Attend(p, nullptr).FloatsOfWorkspace(), LogitFloats(p));
  p.batch = 1;
  p.keys = RowExtent(7 * 10);
  EXPECT_EQ(AttendWorkspaceFloats(p) - Attend(p, nullptr).FloatsOfWorkspace(), 8 * LogitFloats(p));
}

// Coefficients depend on the differences of logits alone, so logits that are all large must not make them
// less exact.
TEST(AttendEmulatedTest, LargeLogitsAreAsExactAsTheirDifferences) {
  constexpr int64_t kQueries = 3, kKeys = 200, kValues = 5;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> logits(kQueries * kKeys), values(kKeys * kValues), out(kQueries * kValues);
  for (float& logit : logits) logit = 300 + normal(random);
  for (float& value : values) value = normal(random);
  AttendProblem p;
  p.batch = 1;
  p.value_channels = kValues;
  p.queries = RowExtent(kQueries);
  p.keys = RowExtent(kKeys);
  p.logits = MatrixRows(static_cast<const float*>(logits.data()), kKeys, 1);
  p.logits_key_stride[kMaxSpatialDims - 1] = 1;
  p.v = MatrixRows(static_cast<const float*>(values.data()), kValues, 1);
  p.out = MatrixRows(out.data(), kValues, 1);
  RunEmulated<AttendKernels, float>(p, 1);
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < kQueries; ++i) {
    for (int64_t c = 0; c < kValues; ++c) {
      double total = 0, want = 0;
      for (int64_t j = 0; j < kKeys; ++j) {
        const double coefficient = std::exp(static_cast<double>(logits[i * kKeys + j]) - 300);
        total += coefficient;
        want += coefficient * values[j * kValues + c];
      }
      want /= total;
      difference += (out[i * kValues + c] - want) * (out[i * kValues + c] - want);
      norm += want * want;
    }
  }
  EXPECT_LE(std::sqrt(difference / norm), kMaxEmulatedError<float>);
}

// A group's keys are all summed by one block, in order. The error must not grow with their number as that of
// a plain sum does.
TEST(AttendEmulatedTest, SumsOverManyKeysAreExact) {
  constexpr int64_t kKeys = 2048, kValues = 20;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(0.5f, 1.5f);
  const std::vector<float> logits(kKeys, 1.0f);
  std::vector<float> values(kKeys * kValues), out(kValues);
  for (float& value : values) value = uniform(random);
  AttendProblem p;
  p.batch = 1;
  p.value_channels = kValues;
  p.queries = RowExtent(1);
  p.keys = RowExtent(kKeys);
  p.key_group = kKeys;
  p.logits = MatrixRows(logits.data(), kKeys, 1);
  p.logits_key_stride[kMaxSpatialDims - 1] = 1;
  p.v = MatrixRows(static_cast<const float*>(values.data()), kValues, 1);
  p.out = MatrixRows(out.data(), kValues, 1);
  RunEmulated<AttendKernels, float>(p, 1);
  double off = 0;
  for (int64_t c = 0; c < kValues; ++c) {
    double mean = 0;
    for (int64_t j = 0; j < kKeys; ++j) mean += values[j * kValues + c] / static_cast<double>(kKeys);
    off += std::abs(out[c] - mean) / mean / kValues;
  }
  EXPECT_LE(off, 1.5e-7);
}

TEST(AttendEmulatedTest, ProductsAlone) {
  const std::vector<AttendTestConfig> configs = {
      {.batch = 2,
       .heads = 2,
       .depth = 70,
       .queries = {9, 13},
       .keys = {66},
       .layout = "pwwp",
       .biases = true},
      {.batch = 3,
       .depth = 5,
       .queries = {4, 6},
       .keys = {3},
       .valid_queries = {4, 6, 2, 5, 0, 1},
       .layout = "cwwc",
       .epilogue = true},
      {.heads = 3, .depth = 33, .queries = {7}, .keys = {90}, .layout = "wwwf"},
  };
  for (AttendTestConfig config : configs) {
    config.softmax = false;
    AttendTestCase<float> exact(config, 1, /*product=*/true);
    RunProduct<float>(exact.Problem(), EmulatedLaunch{1});
    EXPECT_LE(exact.Error(), kMaxEmulatedError<float>) << config;
    AttendTestCase<DeviceBFloat16> half(config, 2, /*product=*/true);
    RunProduct<DeviceBFloat16>(half.Problem(), EmulatedLaunch{2});
    EXPECT_LE(half.Error(), kMaxEmulatedError<DeviceBFloat16>) << config;
  }
}

// The fragments of mma.m16n8k16 as the PTX manual defines them.
TEST(AttendEmulatedTest, TensorCoreFragments) {
  std::mt19937 random(3);
  float a[16][16], b[16][8], want[16][8], got[16][8];
  for (auto& row : a) {
    for (float& value : row) value = static_cast<float>(random() % 17) - 8;
  }
  for (auto& row : b) {
    for (float& value : row) value = static_cast<float>(random() % 17) - 8;
  }
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      want[m][n] = static_cast<float>(m - n);
      for (int k = 0; k < 16; ++k) want[m][n] += a[m][k] * b[k][n];
    }
  }
  emulator::Launch({.block = 32, .seed = 4}, [&] {
    const int group = static_cast<int>(threadIdx.x) >> 2;
    const int in_group = static_cast<int>(threadIdx.x) % 4;
    DeviceHalf left[8], right[4];
    for (int i = 0; i < 8; ++i) {
      const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
      const int column = in_group * 2 + (i & 1) + (i < 4 ? 0 : 8);
      left[i] = static_cast<DeviceHalf>(a[row][column]);
    }
    for (int i = 0; i < 4; ++i)
      right[i] = static_cast<DeviceHalf>(b[in_group * 2 + (i & 1) + (i < 2 ? 0 : 8)][group]);
    uint32_t left_words[4], right_words[2];
    __builtin_memcpy(left_words, left, sizeof(left));
    __builtin_memcpy(right_words, right, sizeof(right));
    float sum[4];
    for (int i = 0; i < 4; ++i) {
      const int row = i < 2 ? group : group + 8;
      sum[i] = static_cast<float>(row - (in_group * 2 + (i & 1)));
    }
    Mma(sum, left_words, right_words, DeviceHalf());
    for (int i = 0; i < 4; ++i) got[i < 2 ? group : group + 8][in_group * 2 + (i & 1)] = sum[i];
  });
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) EXPECT_EQ(got[m][n], want[m][n]) << m << ", " << n;
  }
}

}  // namespace
}  // namespace saccade::kernels
