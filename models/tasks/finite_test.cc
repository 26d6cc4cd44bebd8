#include "models/tasks/finite.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <limits>

namespace saccade::models {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(AllFiniteOnDevice, FindsAValueInAnyTypeAndLayout) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
      EXPECT_TRUE(AllFiniteOnDevice(at::ones({3, 4, 5, 6}, type))) << type;
      const at::Tensor map = at::ones({3, 8, 9, 7}, type).contiguous(at::MemoryFormat::ChannelsLast);
      map[1][7][8][6].fill_(bad);
      EXPECT_FALSE(AllFiniteOnDevice(map)) << type << " " << bad;
      EXPECT_TRUE(AllFiniteOnDevice(map[0])) << type << " " << bad;
      EXPECT_FALSE(AllFiniteOnDevice(map[1])) << type << " " << bad;
      EXPECT_TRUE(AllFiniteOnDevice(map[2])) << type << " " << bad;
    }
  }
}

TEST(AllFiniteOnDevice, InfinitiesThatCancelAreFound) {
  const at::Tensor map = at::ones({2, 3});
  map[0][0].fill_(kInfinity);
  map[0][1].fill_(-kInfinity);
  EXPECT_FALSE(AllFiniteOnDevice(map[0]));
  EXPECT_TRUE(AllFiniteOnDevice(map[1]));
}

TEST(AllFiniteOnDevice, LargeValuesAreFiniteThoughTheirSumIsNot) {
  EXPECT_TRUE(AllFiniteOnDevice(at::full({1, 100}, 3e38F)));
  EXPECT_TRUE(AllFiniteOnDevice(at::full({1, 100}, 6e4F).to(at::kHalf)));
}

TEST(FiniteItems, TellsTheItemsOfABatch) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    at::Tensor batch = at::full({4, 3, 5, 7}, -3e38F);
    batch[1][2][4][6].fill_(bad);
    batch[3][0][0][0].fill_(bad);
    for (const at::Tensor& values : {batch, batch.contiguous(at::MemoryFormat::ChannelsLast),
                                     batch.transpose(1, 2), batch.unsqueeze(2)}) {
      const at::Tensor finite = FiniteItems(values);
      ASSERT_EQ(finite.scalar_type(), at::kBool);
      ASSERT_EQ(finite.numel(), 4);
      for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(finite[i].item<bool>(), i % 2 == 0) << i << " " << bad;
    }
  }
}

}  // namespace
}  // namespace saccade::models
