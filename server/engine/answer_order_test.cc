#include "server/engine/answer_order.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/inline_passes.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AnswerOrderTest : public ::testing::Test {
 protected:
  void Answer(AnswerOrder::Turn& turn, int number) {
    turn.Answer([this, number] { left_.push_back(number); });
  }

  AnswerOrder order_;
  std::vector<int> left_;
};

TEST_F(AnswerOrderTest, AnAnswerWaitsForAllBeforeIt) {
  auto first = order_.Enter();
  auto second = order_.Enter();
  auto third = order_.Enter();
  Answer(third, 3);
  Answer(second, 2);
  EXPECT_THAT(left_, IsEmpty());
  Answer(first, 1);
  EXPECT_THAT(left_, ElementsAre(1, 2, 3));
}

TEST_F(AnswerOrderTest, NoAnswerWaitsForAPassThatAnotherStarts) {
  auto first = order_.Enter();
  auto second = order_.Enter();
  Answer(second, 2);
  InlinePasses passes = InlinePasses::kAny;
  first.Answer([&] { passes = LimitInlinePasses::Current(); });
  EXPECT_EQ(passes, InlinePasses::kNone);
  EXPECT_THAT(left_, ElementsAre(2));
}

TEST_F(AnswerOrderTest, TheFirstLeavesAtOnce) {
  auto first = order_.Enter();
  auto second = order_.Enter();
  Answer(first, 1);
  EXPECT_THAT(left_, ElementsAre(1));
  Answer(second, 2);
  EXPECT_THAT(left_, ElementsAre(1, 2));
}

TEST_F(AnswerOrderTest, NobodyWaitsForWhatIsSkipped) {
  auto first = order_.Enter();
  auto second = order_.Enter();
  auto third = order_.Enter();
  auto fourth = order_.Enter();
  third.Skip();
  third.Skip();
  Answer(second, 2);
  Answer(fourth, 4);
  EXPECT_THAT(left_, IsEmpty());
  first.Skip();
  EXPECT_THAT(left_, ElementsAre(2, 4));
}

TEST_F(AnswerOrderTest, APlaceThatIsDroppedIsSkipped) {
  auto first = order_.Enter();
  auto second = order_.Enter();
  Answer(second, 2);
  {
    const AnswerOrder::Turn moved = std::move(first);
    EXPECT_THAT(left_, IsEmpty());
  }
  EXPECT_THAT(left_, ElementsAre(2)) << "once, as the turn that was moved from holds none";
}

TEST_F(AnswerOrderTest, WhatLeavesMayEnterAgain) {
  auto first = order_.Enter();
  auto second = order_.Enter();
  Answer(second, 2);
  first.Answer([this] {
    left_.push_back(1);
    auto again = order_.Enter();
    Answer(again, 3);
    EXPECT_THAT(left_, ElementsAre(1)) << "behind the one that waits";
  });
  EXPECT_THAT(left_, ElementsAre(1, 2, 3));
}

TEST_F(AnswerOrderTest, WhatAnAnswerHeldIsFreedBeforeTheNextLeaves) {
  auto first = order_.Enter();
  auto second = order_.Enter();
  auto held = std::make_shared<int>(1);
  second.Answer([&held] { EXPECT_EQ(held.use_count(), 1); });
  first.Answer([copy = held] {});
  EXPECT_EQ(held.use_count(), 1);
}

// Requests enter one after the other and end on many threads in random order. None is lost, and answers leave
// in order, one thread at a time.
TEST_F(AnswerOrderTest, OrderHoldsOverManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 3000;
  absl::Mutex entering;
  int entered = 0;
  int answered = 0;
  std::atomic<int> skipped{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= kThreads; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      std::vector<std::pair<int, AnswerOrder::Turn>> mine;
      for (int i = 0; i < kEach; ++i) {
        {
          absl::MutexLock lock(&entering);
          mine.emplace_back(entered, order_.Enter());
          ++entered;
        }
        if (random() % 3 != 0) continue;
        for (auto& [number, turn] : mine) {
          if (random() % 4 == 0) {
            ++skipped;
            turn.Skip();
          } else {
            turn.Answer([this, &answered, number = number] {
              left_.push_back(number);
              ++answered;
            });
          }
        }
        mine.clear();
      }
      skipped += static_cast<int>(mine.size());
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(entered, kThreads * kEach);
  EXPECT_EQ(answered + skipped, kThreads * kEach);
  EXPECT_TRUE(std::is_sorted(left_.begin(), left_.end()));
}

}  // namespace
}  // namespace saccade::server
