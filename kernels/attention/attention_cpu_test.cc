// Compares the CPU code, for every instruction set that this processor supports, with the formulas in
// float64.
#include "kernels/attention/attention_cpu.h"

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/attention/attention_testing.h"
#include "kernels/common/bfloat16.h"

namespace saccade::kernels {
namespace {

// The workspace is exactly as long as promised, and filled with NaN: all bits set is a NaN in every type.
void RunCpu(const AttentionProblem& problem, CpuIsa isa, int threads) {
  std::vector<std::byte> workspace(AttentionCpuWorkspaceBytes(problem, threads), std::byte{0xff});
  RunAttentionCpu(problem, isa, PlainThreads(threads), workspace.data());
}

class AttentionCpu : public testing::TestWithParam<std::tuple<AttentionTestConfig, CpuIsa>> {
 protected:
  const AttentionTestConfig& config() const { return std::get<0>(GetParam()); }
  CpuIsa isa() const { return std::get<1>(GetParam()); }

  template <typename T>
  double ErrorIn(unsigned seed) const {
    AttentionTestCase<T> test(config(), seed);
    RunCpu(test.Problem(), isa(), 2);
    return test.Error();
  }
};

TEST_P(AttentionCpu, MatchesTheFormulasInFloat32) { EXPECT_LE(ErrorIn<float>(1), 1e-6); }

TEST_P(AttentionCpu, MatchesTheFormulasInBFloat16) { EXPECT_LE(ErrorIn<BFloat16>(2), 1e-2); }

TEST_P(AttentionCpu, MatchesTheFormulasInFloat64) { EXPECT_LE(ErrorIn<double>(3), 1e-12); }

TEST_P(AttentionCpu, DoesNotDependOnTheNumberOfThreads) {
  AttentionTestCase<float> first(config(), 4);
  RunCpu(first.Problem(), isa(), 1);
  for (const int threads : {2, 3, 7}) {
    AttentionTestCase<float> again(config(), 4);
    RunCpu(again.Problem(), isa(), threads);
    EXPECT_TRUE(SameBits(first.out(), again.out())) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, AttentionCpu,
                         testing::Combine(testing::ValuesIn(AttentionTestConfigs()),
                                          testing::ValuesIn(InstructionSets())));

// Several splits of the positions with a short last one, over which the context is summed; and samples in one
// batch that are computed in different orders.
INSTANTIATE_TEST_SUITE_P(Splits, AttentionCpu,
                         testing::Combine(testing::Values(AttentionTestConfig{.kind = AttentionKind::kMean,
                                                                              .channels = 20,
                                                                              .heads = 2,
                                                                              .extent = {23, 31},
                                                                              .value_channels = 12},
                                                          AttentionTestConfig{.kind = AttentionKind::kMean,
                                                                              .batch = 2,
                                                                              .channels = 18,
                                                                              .extent = {29, 19},
                                                                              .module = true,
                                                                              .key_channels = 18,
                                                                              .value_channels = 18,
                                                                              .out_channels = 18,
                                                                              .biases = true,
                                                                              .affine = true,
                                                                              .residual = true,
                                                                              .valid = {28, 19, 2, 7}}),
                                          testing::ValuesIn(InstructionSets())));

// Returns random transforms, widths and extents that fit each other.
AttentionTestConfig RandomConfig(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  const auto maybe = [&] { return pick(0, 1) != 0; };
  AttentionTestConfig c;
  c.kind = static_cast<AttentionKind>(seed % 3);
  c.batch = pick(1, 5);
  c.heads = pick(1, 3);
  c.channels = c.heads * pick(1, 25);
  const int64_t dims = pick(1, 3);
  c.extent.clear();
  for (int64_t d = 0; d < dims; ++d) c.extent.push_back(pick(1, dims == 1 ? 200 : dims == 2 ? 15 : 6));
  c.value_channels = c.heads * pick(1, 25);
  c.channels_last = maybe();
  c.module = pick(0, 3) != 0;
  if (c.module) {
    c.query_weight = maybe();
    c.key_channels = pick(0, 2) == 0 ? 0 : c.query_weight ? c.heads * pick(1, 25) : c.channels;
    if (maybe()) c.value_channels = c.channels;
    if (maybe()) c.out_channels = maybe() ? c.channels : pick(8, 90);
    c.biases = maybe();
    c.affine = maybe();
    c.residual = (c.out_channels > 0 ? c.out_channels : c.value_channels) == c.channels && maybe();
  }
  if (pick(0, 2) == 0) {
    for (int64_t i = 0; i < c.batch * dims; ++i) c.valid.push_back(pick(0, c.extent[i % dims]));
  }
  return c;
}

TEST(AttentionCpuTest, MatchesTheFormulasWhateverTheShape) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const AttentionTestConfig config = RandomConfig(seed);
    SCOPED_TRACE(testing::Message() << config);
    AttentionTestCase<float> test(config, seed);
    RunCpu(test.Problem(), BestCpuIsa(), 1 + static_cast<int>(seed % 3));
    EXPECT_LE(test.Error(), 1e-6);
  }
}

// A logit far above all others of its query is first, last or in the middle: sums from before must be
// rescaled.
TEST(AttentionCpuTest, FollowsTheLargestLogitWhereverItIs) {
  constexpr int64_t kPositions = 700;
  for (const int64_t at : {int64_t{0}, int64_t{350}, kPositions - 1}) {
    std::vector<float> q(kPositions, 1.0f), k(kPositions, 0.0f), v(kPositions, 1.0f), out(kPositions, -1.0f);
    k[at] = 200;
    v[at] = 3;
    const std::vector<int64_t> size = {kPositions};
    AttentionProblem p;
    p.batch = p.key_channels = p.value_channels = p.out_channels = 1;
    p.extent = ExtentOf(size, {});
    for (auto [input, data] : {std::pair{&p.q, &q}, std::pair{&p.k, &k}, std::pair{&p.v, &v}}) {
      input->map = {data->data(), kPositions, kPositions, {0, 0, 1}};
      input->channels = 1;
    }
    p.out = {out.data(), kPositions, kPositions, {0, 0, 1}};
    for (const CpuIsa isa : InstructionSets()) {
      RunCpu(p, isa, 1);
      for (const float value : out) ASSERT_EQ(value, 3.0f) << "the largest logit at " << at;
    }
  }
}

}  // namespace
}  // namespace saccade::kernels
