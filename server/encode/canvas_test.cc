#include "server/encode/canvas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

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
  EXPECT_THAT(*Nearest(Values{1, 2, 3, 4}, {1, 4}, {1, 2}), ElementsAre(2, 4));
  EXPECT_THAT(*Nearest(Values{1, 2}, {2, 1}, {4, 1}), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(*Nearest(Values{1, 2, 3}, {1, 3}, {1, 1}), ElementsAre(2));
  EXPECT_THAT(*Nearest(Values{1, 2, 3, 4}, {2, 2}, {2, 2}), ElementsAre(1, 2, 3, 4));
}

// The definition: each output pixel looks up its input pixel by itself.
Values NearestByDivision(const Values& values, models::Size from, models::Size to) {
  Values out;
  for (int64_t row = 0; row < to.height; ++row) {
    for (int64_t column = 0; column < to.width; ++column) {
      const int64_t y = (2 * row + 1) * from.height / (2 * to.height);
      const int64_t x = (2 * column + 1) * from.width / (2 * to.width);
      out.push_back(values[static_cast<size_t>(y * from.width + x)]);
    }
  }
  return out;
}

TEST(CanvasTest, AMapOfAnySizeIsAsIfEachPixelWereLookedUp) {
  const std::vector<models::Size> sizes = {{1, 1},   {1, 7},  {7, 1},    {3, 5},
                                           {13, 17}, {31, 2}, {101, 97}, {64, 128}};
  for (const models::Size from : sizes) {
    Values values(static_cast<size_t>(from.height * from.width));
    std::iota(values.begin(), values.end(), 0);
    for (const models::Size to : sizes) {
      EXPECT_EQ(*Nearest(values, from, to), NearestByDivision(values, from, to))
          << from.width << " x " << from.height << " to " << to.width << " x " << to.height;
    }
  }
}

// A map's value that counts how often one was copied.
struct CountedValue {
  CountedValue() = default;
  CountedValue(const CountedValue& /*other*/) { ++copies; }
  CountedValue& operator=(const CountedValue& /*other*/) {
    ++copies;
    return *this;
  }
  static inline int64_t copies = 0;
};

TEST(CanvasTest, NoRowIsScaledForACallThatHasEnded) {
  const std::vector<CountedValue> values(1);
  CountedValue::copies = 0;
  int asked = 0;
  int64_t copies = -1;
  const StillWanted wanted = [&] {
    if (++asked < 3) return absl::OkStatus();
    copies = CountedValue::copies;
    return absl::CancelledError("left");
  };
  EXPECT_EQ(Nearest(values, {1, 1}, {1'024, 1'024}, wanted).status(), absl::CancelledError("left"));
  EXPECT_EQ(asked, 3);
  EXPECT_GE(copies, 2 * kValuesBetweenQuestions) << "two parts of the map were made before";
  EXPECT_LT(copies, 3 * kValuesBetweenQuestions);
  EXPECT_EQ(CountedValue::copies, copies) << "values copied after the call had ended";
}

}  // namespace
}  // namespace saccade::server
