#include "server/catalog/cores.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/usable_cores.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;

TEST(CoresTest, OneAfterTheOtherAndRound) {
  const std::vector<int> allowed = {2, 3, 5, 8};
  EXPECT_THAT(CoresFrom(allowed, 0, 2), ElementsAre(2, 3));
  EXPECT_THAT(CoresFrom(allowed, 2, 2), ElementsAre(5, 8));
  EXPECT_THAT(CoresFrom(allowed, 3, 2), ElementsAre(8, 2));
  EXPECT_THAT(CoresFrom(allowed, 9, 1), ElementsAre(3));
  EXPECT_THAT(CoresFrom(allowed, 1, 100), ElementsAre(3, 5, 8, 2)) << "none comes twice";
}

TEST(CoresTest, AThreadAndWhatItStartsKeepToTheirCores) {
  const std::vector<int> all = AllowedProcessors();
  ASSERT_FALSE(all.empty());
  std::vector<int> own, started;
  std::thread pinned([&] {
    EXPECT_TRUE(KeepToCores({all.back()}).ok());
    own = AllowedProcessors();
    std::thread([&] { started = AllowedProcessors(); }).join();
  });
  pinned.join();
  EXPECT_THAT(own, ElementsAre(all.back()));
  EXPECT_EQ(started, own);
  EXPECT_EQ(AllowedProcessors(), all) << "others are left alone";
}

TEST(CoresTest, CoresThatAreNotThereAreAnError) { EXPECT_FALSE(KeepToCores({}).ok()); }

}  // namespace
}  // namespace saccade::server
