#include "server/encode/canvas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using Values = std::vector<int>;

TEST(CanvasTest, APartLiesWhereItWasCut) {
  EXPECT_THAT(OnCanvas(Values{1, 2, 3, 4}, {2, 2}, 1, 0, {3, 4}, 9), ElementsAre(9, 1, 2, 9,  //
                                                                                 9, 3, 4, 9,  //
                                                                                 9, 9, 9, 9));
  EXPECT_THAT(OnCanvas(Values{1, 2}, {1, 2}, 0, 0, {1, 2}, 9), ElementsAre(1, 2));
}

TEST(CanvasTest, TheNearestPixelIsTheOneUnderTheCentre) {
  EXPECT_THAT(Nearest(Values{1, 2, 3, 4}, {1, 4}, {1, 2}), ElementsAre(2, 4));
  EXPECT_THAT(Nearest(Values{1, 2}, {2, 1}, {4, 1}), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(Nearest(Values{1, 2, 3}, {1, 3}, {1, 1}), ElementsAre(2));
  EXPECT_THAT(Nearest(Values{1, 2, 3, 4}, {2, 2}, {2, 2}), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace saccade::server
