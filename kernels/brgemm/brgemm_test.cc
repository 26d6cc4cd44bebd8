#include "kernels/brgemm/brgemm.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/common/cpu_isa.h"

namespace saccade::kernels {
namespace {

class BrgemmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor does not multiply bfloat16 itself";
  }
};

// Also without AMX, with which this library is used: oneDNN then multiplies with AVX-512.
TEST_F(BrgemmTest, ComputesBlocks) { EXPECT_TRUE(ComputesBlocks(&BFloat16ProductOfOneDnn)); }

#if defined(__x86_64__)
// The logits and the sums of an attention: both ways round to bfloat16 alike, and add in float32.
TEST_F(BrgemmTest, ProductsAreThoseOfOurLoops) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const bool adjacent_rows : {false, true}) {
    const int64_t m = 200, n = 64, k = 300;
    std::vector<float> a(m * k), b(k * n), ours(m * n, 1), theirs(m * n, 1);
    for (float& value : a) value = normal(random);
    for (float& value : b) value = normal(random);
    const MatrixView<float> view =
        adjacent_rows ? MatrixView<float>{a.data(), 1, m} : MatrixView<float>{a.data(), k, 1};
    const TileCode<float>& code = TileCodeFor<float>(CpuIsa::kAvx512, Dtype::kBFloat16);
    code.product(m, n, k, view, b.data(), n, ours.data(), n, true);
    BlockTileCode(&BFloat16ProductOfOneDnn).product(m, n, k, view, b.data(), n, theirs.data(), n, true);
    for (size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], theirs[i], 1e-4);
  }
}
#endif

}  // namespace
}  // namespace saccade::kernels
