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
  const std::vector<PhysicalCore> cores = {{2}, {3}, {5}, {8}};
  EXPECT_THAT(ProcessorsOfCores(cores, 0, 2), ElementsAre(2, 3));
  EXPECT_THAT(ProcessorsOfCores(cores, 2, 2), ElementsAre(5, 8));
  EXPECT_THAT(ProcessorsOfCores(cores, 3, 2), ElementsAre(8, 2));
  EXPECT_THAT(ProcessorsOfCores(cores, 9, 1), ElementsAre(3));
  EXPECT_THAT(ProcessorsOfCores(cores, 1, 100), ElementsAre(3, 5, 8, 2)) << "none comes twice";
}

TEST(CoresTest, ACoreBringsAllItsThreads) {
  const std::vector<PhysicalCore> cores = {{0, 1}, {2, 3}, {4, 5}};
  EXPECT_THAT(ProcessorsOfCores(cores, 0, 2), ElementsAre(0, 1, 2, 3)) << "0 and 1 are one core";
  EXPECT_THAT(ProcessorsOfCores(cores, 2, 2), ElementsAre(4, 5, 0, 1));
}

TEST(CoresTest, AThreadAndWhatItStartsKeepToTheirCores) {
  const std::vector<int> all = AllowedProcessors();
  ASSERT_FALSE(all.empty());
  std::vector<int> own, started;
  std::thread pinned([&] {
    EXPECT_TRUE(KeepToProcessors({all.back()}).ok());
    own = AllowedProcessors();
    std::thread([&] { started = AllowedProcessors(); }).join();
  });
  pinned.join();
  EXPECT_THAT(own, ElementsAre(all.back()));
  EXPECT_EQ(started, own);
  EXPECT_EQ(AllowedProcessors(), all) << "others are left alone";
}

TEST(CoresTest, ProcessorsThatAreNotThereAreAnError) { EXPECT_FALSE(KeepToProcessors({}).ok()); }

}  // namespace
}  // namespace saccade::server
