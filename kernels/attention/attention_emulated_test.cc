// Compares the CUDA kernels of attention.cuh, compiled by g++ and run on the CPU, with the formulas in
// float64.
#include "kernels/attention/attention.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/attention/attention_packed.cuh"
#include "kernels/attention/attention_testing.h"
#include "kernels/device/testing/emulated_test.h"

namespace saccade::kernels {
namespace {

struct AttentionKernels {
  using Config = AttentionTestConfig;
  template <typename T>
  using Case = AttentionTestCase<T>;

  static bool Fits(const AttentionProblem& problem) { return AttentionCudaFits(problem); }
  static int64_t Floats(const AttentionProblem& problem) {
    return AttentionCuda(problem, nullptr).FloatsOfWorkspace();
  }
  template <typename T>
  static void Run(const AttentionProblem& problem, float* workspace, const EmulatedLaunch& launch) {
    RunAttentionCuda<T>(problem, workspace, launch);
  }
};
using AttentionEmulated = EmulatedTest<AttentionKernels>;
using AttentionEmulatedSome = EmulatedTest<AttentionKernels>;

TEST_P(AttentionEmulated, MatchesTheFormulasInFloat32) { MatchesTheFormulas<float>(); }
TEST_P(AttentionEmulated, MatchesTheFormulasInBFloat16) { MatchesTheFormulas<DeviceBFloat16>(); }
TEST_P(AttentionEmulatedSome, MatchesTheFormulasInFloat16) { MatchesTheFormulas<DeviceHalf>(); }
TEST_P(AttentionEmulatedSome, DoesNotDependOnTheOrderOfThreads) {
  DoesNotDependOnTheOrderOfThreads<DeviceBFloat16>();
}

INSTANTIATE_TEST_SUITE_P(Configs, AttentionEmulated, testing::ValuesIn(AttentionTestConfigs()));
INSTANTIATE_TEST_SUITE_P(Configs, AttentionEmulatedSome,
                         testing::ValuesIn(EveryThird(AttentionTestConfigs())));

// The kernels around a library's attention, which is computed here in float64 from what they packed.
template <typename T>
void RunPacked(const AttentionProblem& p, uint64_t seed) {
  const AttentionCuda run(p, nullptr);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  AttentionPacked packed;
  packed.head_channels = PackedHeadChannels(p);
  const int64_t queries = PositionsOf(p.extent);
  const int64_t keys = PositionsOf(run.keys);
  const int64_t row = p.heads * packed.head_channels;
  ASSERT_TRUE(AttentionPacksFit(p));
  std::vector<float> workspace(run.floats + 1, nan);
  std::vector<T> q(p.batch * queries * row, T(nan)), k(p.batch * keys * row, T(nan)), v = k, out = q;
  std::vector<int32_t> query_starts(p.batch + 1, -1), key_starts = query_starts, used(p.batch, -1);
  packed.q = q.data();
  packed.k = k.data();
  packed.v = v.data();
  packed.out = out.data();
  packed.query_starts = query_starts.data();
  packed.key_starts = key_starts.data();
  packed.used_keys = used.data();
  RunAttentionPack<T>(p, packed, workspace.data(), EmulatedLaunch{seed});
  for (int64_t b = 0; b < p.batch; ++b) {
    ASSERT_EQ(query_starts[b + 1] - query_starts[b], queries);
    ASSERT_EQ(key_starts[b + 1] - key_starts[b], keys);
    for (int64_t i = query_starts[b]; i < query_starts[b + 1]; ++i) {
      for (int64_t h = 0; h < p.heads; ++h) {
        std::vector<double> weights(used[b]), sums(packed.head_channels);
        double total = 0;
        for (int64_t j = 0; j < used[b]; ++j) {
          double logit = 0;
          for (int64_t c = 0; c < packed.head_channels; ++c) {
            const int64_t at = h * packed.head_channels + c;
            logit +=
                static_cast<double>(ToFloat(q[i * row + at])) * ToFloat(k[(key_starts[b] + j) * row + at]);
          }
          total += weights[j] = std::exp(logit * p.logit_scale);
        }
        for (int64_t c = 0; c < packed.head_channels; ++c) {
          const int64_t at = h * packed.head_channels + c;
          double sum = 0;
          for (int64_t j = 0; j < used[b]; ++j) {
            sum += weights[j] / total * ToFloat(v[(key_starts[b] + j) * row + at]);
          }
          out[i * row + at] = T(static_cast<float>(sum));
        }
      }
    }
  }
  RunAttentionUnpack<T>(p, packed, workspace.data(), EmulatedLaunch{seed});
}

class AttentionPackedEmulated : public testing::TestWithParam<AttentionTestConfig> {};

TEST_P(AttentionPackedEmulated, MatchesTheFormulas) {
  AttentionTestCase<DeviceBFloat16> test(GetParam(), 1);
  if (PackedHeadChannels(test.Problem()) == 0) GTEST_SKIP() << "left to the attention core";
  RunPacked<DeviceBFloat16>(test.Problem(), 1);
  EXPECT_LE(test.Error(), kMaxEmulatedError<DeviceBFloat16>);
  AttentionTestCase<DeviceBFloat16> again(GetParam(), 1);
  RunPacked<DeviceBFloat16>(again.Problem(), 2);
  EXPECT_TRUE(SameBits(test.out(), again.out()));
}

INSTANTIATE_TEST_SUITE_P(Configs, AttentionPackedEmulated, testing::ValuesIn(AttentionTestConfigs()));

// Runs a problem with them; their workspaces are their own.
struct PackedKernels : AttentionKernels {
  template <typename T>
  static void Run(const AttentionProblem& problem, float* /*workspace*/, const EmulatedLaunch& launch) {
    RunPacked<T>(problem, launch.seed);
  }
};

template <typename Kernels, typename T>
void OffsetsHave64Bits(AttentionKind kind) {
  const AttentionTestConfig module = {.kind = kind,
                                      .batch = 2,
                                      .channels = 8,
                                      .heads = 2,
                                      .extent = {5, 16},
                                      .module = true,
                                      .key_channels = 4,
                                      .value_channels = 4,
                                      .out_channels = 8,
                                      .biases = true,
                                      .affine = true,
                                      .residual = true,
                                      .valid = {5, 16, 4, 13}};
  const AttentionTestConfig bare = {
      .kind = kind, .batch = 2, .channels = 4, .heads = 2, .extent = {5, 16}, .value_channels = 6};
  for (AttentionTestConfig config : {module, bare}) {
    for (const bool channels_last : {false, true}) {
      config.channels_last = channels_last;
      AttentionTestCase<T> test(config, 5);
      FarMapsGiveTheSameBits<Kernels, T>(test.Problem(), [](FarMaps<T>& maps, AttentionProblem& p) {
        for (AttentionInput* input : {&p.q, &p.k, &p.v}) maps.Move(input->map, input->channels, p.extent);
        if (p.residual.data != nullptr) maps.Move(p.residual, p.q.channels, p.extent);
        maps.MoveResult(p.out, p.out_channels, p.extent);
      });
    }
  }
}
TEST(AttentionEmulatedTest, OffsetsHave64Bits) {
  for (const auto kind : {AttentionKind::kSoftmax, AttentionKind::kPooled, AttentionKind::kMean}) {
    OffsetsHave64Bits<AttentionKernels, float>(kind);
    OffsetsHave64Bits<AttentionKernels, DeviceHalf>(kind);
  }
}
TEST(AttentionPackedEmulatedTest, OffsetsHave64Bits) {
  for (const auto kind : {AttentionKind::kSoftmax, AttentionKind::kPooled}) {
    OffsetsHave64Bits<PackedKernels, DeviceBFloat16>(kind);
  }
}

// Padding may change neither the choice nor the size of a head.
TEST(AttentionPackedEmulatedTest, TheChoiceDoesNotDependOnExtents) {
  AttentionProblem p;
  p.dtype = Dtype::kBFloat16;
  p.heads = 2;
  p.key_channels = 18;
  p.value_channels = 40;
  for (const int64_t size : {1, 100, 1000}) {
    p.batch = size;
    p.extent = RowExtent(size);
    EXPECT_EQ(PackedHeadChannels(p), 24);
  }
  p.logit_scale = -1;
  EXPECT_EQ(PackedHeadChannels(p), 0);
  p.logit_scale = 1;
  p.dtype = Dtype::kFloat32;
  EXPECT_EQ(PackedHeadChannels(p), 0);
  p.dtype = Dtype::kFloat16;
  p.value_channels = 514;
  EXPECT_EQ(PackedHeadChannels(p), 0);
}

}  // namespace
}  // namespace saccade::kernels
