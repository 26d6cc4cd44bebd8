#include "models/tasks/finite.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace saccade::models {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(FiniteItems, TellsEachItemApartInAnyTypeAndLayout) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
      const at::Tensor fine = at::ones({3, 4, 5, 6}, type);
      const at::Tensor map = at::ones({3, 8, 9, 7}, type).contiguous(at::MemoryFormat::ChannelsLast);
      map[1][7][8][6].fill_(bad);
      EXPECT_THAT(FiniteItems({fine, map}), ElementsAre(true, false, true)) << type << " " << bad;
    }
  }
}

TEST(FiniteItems, InfinitiesThatCancelAreFound) {
  const at::Tensor map = at::ones({2, 3});
  map[0][0].fill_(kInfinity);
  map[0][1].fill_(-kInfinity);
  EXPECT_THAT(FiniteItems({map}), ElementsAre(false, true));
}

TEST(FiniteItems, LargeValuesAreFiniteThoughTheirSumIsNot) {
  EXPECT_THAT(FiniteItems({at::full({1, 100}, 3e38F)}), ElementsAre(true));
  EXPECT_THAT(FiniteItems({at::full({1, 100}, 6e4F).to(at::kHalf)}), ElementsAre(true));
}

}  // namespace
}  // namespace saccade::models
