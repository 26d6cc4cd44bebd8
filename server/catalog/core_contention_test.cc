#include "server/catalog/core_contention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

using ::testing::DoubleNear;
using ::testing::Optional;

constexpr CoreUse kAlone = {.by_others = 0, .own = 0};
constexpr CoreUse kBusy = {.by_others = 0.5, .own = 0};

// Time is a number that the tests add to.
class ContentionChangeTest : public ::testing::Test {
 protected:
  // Adds a sample every ten seconds. Returns after which time the trials are to be repeated, if they are.
  std::optional<absl::Duration> RunFor(absl::Duration time, const CoreUse& use) {
    for (absl::Duration passed; passed < time; passed += absl::Seconds(10)) {
      const auto by_others = change_.Add(now_ + passed, use);
      if (!by_others) continue;
      tried_with_ = *by_others;
      now_ += passed + absl::Seconds(10);
      return passed;
    }
    now_ += time;
    return std::nullopt;
  }

  ContentionChange change_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  double tried_with_ = -1;
};

TEST_F(ContentionChangeTest, NothingBesideTheDaemonChangesNothing) {
  EXPECT_EQ(RunFor(absl::Hours(5), kAlone), std::nullopt);
  EXPECT_EQ(RunFor(absl::Hours(5), {.by_others = 0.3, .own = 0}), std::nullopt) << "within the band";
}

TEST_F(ContentionChangeTest, ALoadThatLastsIsTriedOnce) {
  EXPECT_THAT(RunFor(absl::Hours(1), kBusy), Optional(absl::Minutes(5)));
  EXPECT_DOUBLE_EQ(tried_with_, 0.5);
  EXPECT_EQ(RunFor(absl::Hours(5), kBusy), std::nullopt);
}

TEST_F(ContentionChangeTest, ItsEndIsTriedToo) {
  EXPECT_TRUE(RunFor(absl::Hours(1), kBusy));
  EXPECT_EQ(RunFor(absl::Hours(1), kBusy), std::nullopt);
  EXPECT_THAT(RunFor(absl::Hours(1), kAlone), Optional(absl::Minutes(5)));
  EXPECT_DOUBLE_EQ(tried_with_, 0);
}

TEST_F(ContentionChangeTest, AShortLoadIsNot) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(RunFor(absl::Minutes(4), kBusy), std::nullopt);
    EXPECT_EQ(RunFor(absl::Minutes(1), kAlone), std::nullopt);
  }
}

TEST_F(ContentionChangeTest, ALoadAtTheEdgeOfTheBandGoesOnCounting) {
  bool tried = false;
  for (int i = 0; i < 20; ++i) {
    tried |= RunFor(absl::Seconds(20), {.by_others = 0.35, .own = 0}).has_value();
    tried |= RunFor(absl::Seconds(20), {.by_others = 0.25, .own = 0}).has_value();
  }
  EXPECT_TRUE(tried);
  EXPECT_NEAR(tried_with_, 0.3, 0.01);
}

TEST_F(ContentionChangeTest, TrialsAreApart) {
  const absl::Time end = now_ + absl::Hours(10);
  int trials = 0;
  absl::Time last = absl::InfinitePast();
  for (bool busy = true; now_ < end; busy = !busy) {
    const absl::Time begin = now_;
    const auto after = RunFor(absl::Minutes(6), busy ? kBusy : kAlone);
    if (!after) continue;
    EXPECT_GE(begin + *after - last, absl::Minutes(30));
    last = begin + *after;
    ++trials;
  }
  EXPECT_GE(trials, 2);
}

TEST_F(ContentionChangeTest, ABusyDaemonIsNotDisturbed) {
  EXPECT_EQ(RunFor(absl::Hours(1), {.by_others = 0.5, .own = 0.5}), std::nullopt);
  EXPECT_THAT(RunFor(absl::Hours(1), kBusy), Optional(absl::ZeroDuration())) << "it has waited long enough";
}

// Files of /proc about four processors, two of which are looked at.
class CoreUseMeterTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = root_ + "/proc/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  // How many ticks each processor was busy and idle.
  void WriteStat(int first, int second, int idle_first, int idle_second) const {
    Write("stat", absl::StrCat("cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 ", first, " 0 0 ", idle_first,
                               " 0 0 0 0 0 0\ncpu1 ", "77 0 0 1 0 0 0 0 0 0\ncpu2 0 0 ", second, " ",
                               idle_second, " 0 0 0 0 0 0\ncpu3 1 0 0 1 0 0 0 0 0 0\nintr 1\n"));
  }
  void WriteProcess(const std::string& folder, int id, int ticks, const std::string& children) const {
    Write(folder + "/stat", absl::StrCat(id, " (a (b) c) S 1 1 1 0 -1 0 0 0 0 0 ", ticks,
                                         " 0 0 0 20 0 1 0 5 4096 10 18446744073709551615\n"));
    Write(absl::StrCat(folder, "/task/", id, "/children"), children);
  }

  const std::string root_ = ::testing::TempDir() + "/core_use." + std::to_string(getpid());
};

TEST_F(CoreUseMeterTest, OthersAreWhatTheDaemonAndItsDescendantsAreNot) {
  WriteProcess("self", 10, 100, "11 ");
  WriteProcess("11", 11, 50, "12 13 ");
  WriteProcess("12", 12, 7, "");
  WriteStat(1000, 1000, 1000, 1000);
  CoreUseMeter meter({0, 2}, 2, root_);
  EXPECT_FALSE(meter.Measure()) << "nothing to compare with";
  // In 100 ticks of each processor, 120 of both were busy: 60 for the daemon itself, 20 for its descendants.
  WriteProcess("self", 10, 160, "11 ");
  WriteProcess("11", 11, 50, "12 13 ");
  WriteProcess("12", 12, 17, "");
  WriteProcess("13", 13, 10, "");
  WriteStat(1100, 1020, 1000, 1080);
  const auto use = meter.Measure();
  ASSERT_TRUE(use);
  EXPECT_THAT(use->own, DoubleNear(0.4, 1e-9));
  EXPECT_THAT(use->by_others, DoubleNear(0.2, 1e-9));
}

TEST_F(CoreUseMeterTest, AChildThatTakesAnothersPlaceIsFound) {
  WriteProcess("self", 10, 0, "11 ");
  WriteProcess("11", 11, 0, "");
  WriteStat(0, 0, 0, 0);
  CoreUseMeter meter({0, 2}, 2, root_);
  EXPECT_FALSE(meter.Measure());
  std::filesystem::remove_all(root_ + "/proc/11");
  WriteProcess("self", 10, 0, "14 ");
  WriteProcess("14", 14, 50, "");
  WriteStat(50, 0, 50, 100);
  EXPECT_DOUBLE_EQ(meter.Measure().value_or(CoreUse{}).own, 0.25);
}

TEST_F(CoreUseMeterTest, WhatIsFreeAnywayIsNotTaken) {
  WriteProcess("self", 10, 0, "");
  WriteStat(0, 0, 0, 0);
  CoreUseMeter meter({0, 2}, 1, root_);
  EXPECT_FALSE(meter.Measure());
  // Others use one processor of two, and the daemon has only one core.
  WriteStat(100, 0, 0, 100);
  EXPECT_DOUBLE_EQ(meter.Measure().value_or(CoreUse{.by_others = -1}).by_others, 0);
  // Now one and a half.
  WriteStat(200, 50, 0, 150);
  EXPECT_DOUBLE_EQ(meter.Measure().value_or(CoreUse{.by_others = -1}).by_others, 0.5);
}

TEST_F(CoreUseMeterTest, AKernelThatDoesNotTellIsNotGuessedAt) {
  CoreUseMeter meter({0, 2}, 2, root_);
  EXPECT_FALSE(meter.Measure());
  WriteStat(0, 0, 0, 0);
  WriteProcess("self", 10, 0, "");
  std::filesystem::remove(root_ + "/proc/self/task/10/children");
  EXPECT_FALSE(meter.Measure());
  WriteStat(100, 100, 0, 0);
  EXPECT_FALSE(meter.Measure()) << "the daemon's workers are not known";
  WriteProcess("self", 10, 0, "");
  CoreUseMeter others({0, 9}, 2, root_);
  EXPECT_FALSE(others.Measure());
  WriteStat(200, 200, 0, 0);
  EXPECT_FALSE(others.Measure()) << "there is no processor 9";
}

// On this machine.
TEST(CoreUseMeterHereTest, SharesAreShares) {
  CoreUseMeter meter({0}, 1);
  meter.Measure();
  const auto use = meter.Measure();
  if (!use) return;
  EXPECT_GE(use->by_others, 0);
  EXPECT_LE(use->by_others, 1);
  EXPECT_GE(use->own, 0);
  EXPECT_LE(use->own, 1);
}

}  // namespace
}  // namespace saccade::server
