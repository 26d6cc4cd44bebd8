#include "server/decode/decode_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;

absl::Time At(int second) { return absl::UnixEpoch() + absl::Seconds(second); }

class DecodeQueueTest : public ::testing::Test {
 protected:
  // Adds a job that notes `number` when it runs, and -number when it is rejected. Returns whether it was
  // kept.
  bool Push(int number, const std::string& model, int deadline = 0, int priority = 0, double weight = 1) {
    auto pushed = queue_.Push({.model = model,
                               .weight = weight,
                               .priority = priority,
                               .deadline = deadline == 0 ? absl::InfiniteFuture() : At(deadline)},
                              {.run = [this, number] { ran_.push_back(number); },
                               .reject = [this, number](const absl::Status&) { ran_.push_back(-number); }});
    if (pushed.removed) std::move(pushed.removed->reject)(absl::ResourceExhaustedError("full"));
    return pushed.taken;
  }

  // Runs the next job, which takes so long.
  std::string Run(absl::Duration took = absl::Milliseconds(10)) {
    auto taken = queue_.Pop();
    if (!taken) return "";
    std::move(taken->job.run)();
    queue_.Done(*taken, took);
    return taken->model;
  }

  DecodeQueue queue_{6};
  std::vector<int> ran_;
};

TEST_F(DecodeQueueTest, WithinAModelPrioritiesThenDeadlinesThenArrivals) {
  Push(1, "m");
  Push(2, "m", 9);
  Push(3, "m", 5);
  Push(4, "m", 5);
  Push(5, "m", 0, 1);
  while (!Run().empty()) {
  }
  EXPECT_THAT(ran_, ElementsAre(5, 3, 4, 2, 1));
  EXPECT_EQ(queue_.size(), 0);
}

// Many large pictures of one model do not delay the small ones of another.
TEST_F(DecodeQueueTest, ModelsShareTheTimeByWeight) {
  std::map<std::string, absl::Duration> used;
  for (int i = 0; i < 3000; ++i) {
    Push(1, "large");
    Push(1, "small");
    Push(1, "heavy", 0, 0, 3);
    // The queue has room for two of each.
    auto taken = queue_.Pop();
    const absl::Duration took = absl::Milliseconds(taken->model == "large" ? 40 : 5);
    used[taken->model] += took;
    queue_.Done(*taken, took);
  }
  EXPECT_NEAR(absl::FDivDuration(used["large"], used["small"]), 1, 0.05) << "by time, not by number";
  EXPECT_NEAR(absl::FDivDuration(used["heavy"], used["small"]), 3, 0.15);
}

// Many pictures of one client do not delay another client's of the same model.
TEST_F(DecodeQueueTest, ClientsTakeTurnsWithinAModel) {
  const auto push = [this](int number, const std::string& client) {
    auto pushed = queue_.Push({.model = "m", .client = client},
                              {.run = [this, number] { ran_.push_back(number); },
                               .reject = [this, number](const absl::Status&) { ran_.push_back(-number); }});
    if (pushed.removed) std::move(pushed.removed->reject)(absl::ResourceExhaustedError("full"));
    return pushed.taken;
  };
  for (int i = 1; i <= 6; ++i) push(i, "many");
  EXPECT_TRUE(push(10, "few")) << "it has its share of the room";
  EXPECT_THAT(ran_, ElementsAre(-6));
  EXPECT_FALSE(push(7, "many"));
  EXPECT_TRUE(push(11, "few"));
  ran_.clear();
  while (!Run().empty()) {
  }
  EXPECT_THAT(ran_, ElementsAre(1, 10, 2, 11, 3, 4));
}

TEST_F(DecodeQueueTest, AnIdleModelIsOwedNothing) {
  Push(1, "idle");
  Run();
  for (int i = 0; i < 1000; ++i) {
    Push(1, "busy");
    Run();
  }
  std::vector<std::string> order;
  for (int i = 0; i < 3; ++i) {
    Push(1, "busy");
    Push(1, "idle");
  }
  for (int i = 0; i < 6; ++i) order.push_back(Run());
  EXPECT_EQ(std::count(order.begin(), order.begin() + 4, "idle"), 2);
}

TEST_F(DecodeQueueTest, WithoutRoomTheModelWithTheMostJobsLosesItsLast) {
  for (int i = 1; i <= 6; ++i) Push(i, "flood", 10 + i);
  EXPECT_TRUE(Push(7, "other", 99)) << "it has its share";
  EXPECT_THAT(ran_, ElementsAre(-6));
  EXPECT_FALSE(Push(8, "flood", 50)) << "later than all that the model has";
  EXPECT_TRUE(Push(9, "flood", 1)) << "more urgent than the model's last";
  EXPECT_THAT(ran_, ElementsAre(-6, -8, -5));
  EXPECT_TRUE(Push(10, "other", 99));
  EXPECT_TRUE(Push(11, "other", 99));
  EXPECT_FALSE(Push(12, "other", 99)) << "both have three";
  EXPECT_EQ(queue_.size(), 6);
  while (!Run().empty()) {
  }
  EXPECT_EQ(queue_.size(), 0);
}

TEST_F(DecodeQueueTest, JobsThatCannotBeRejectedStay) {
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(queue_.Push({.model = "m"}, {.run = [] {}}).taken);
  EXPECT_FALSE(Push(1, "other"));
  EXPECT_THAT(ran_, ElementsAre(-1));
}

TEST_F(DecodeQueueTest, TheDemandIsWhatRanAndWhatWasRejected) {
  Push(1, "m");
  EXPECT_EQ(queue_.TakeDemand(), absl::ZeroDuration()) << "nobody knows yet how long it takes";
  Run(absl::Milliseconds(40));
  EXPECT_EQ(queue_.TakeDemand(), absl::Milliseconds(40));
  EXPECT_EQ(queue_.TakeDemand(), absl::ZeroDuration()) << "it was taken";
  for (int i = 0; i < 6; ++i) Push(i, "m");
  EXPECT_FALSE(Push(7, "m"));
  EXPECT_EQ(queue_.TakeDemand(), absl::Milliseconds(40)) << "as long as the model's jobs usually take";
  EXPECT_TRUE(Push(8, "unknown")) << "in place of one of the other model's";
  EXPECT_EQ(queue_.TakeDemand(), absl::Milliseconds(40));
  EXPECT_FALSE(
      queue_.Push({.model = "m", .may_replace = false, .done_in_any_case = true}, {.run = [] {}}).taken);
  EXPECT_EQ(queue_.TakeDemand(), absl::ZeroDuration()) << "the caller does it";
  EXPECT_FALSE(queue_.Push({.model = "lookers", .may_replace = false}, {.run = [] {}}).taken);
  EXPECT_EQ(queue_.TakeDemand(), absl::Milliseconds(40)) << "an unknown model's take as long as others";
}

TEST_F(DecodeQueueTest, LongJobsLeaveAThreadToTheOthers) {
  DecodeQueue queue(/*max_jobs=*/10, /*max_long_running=*/1);
  const auto push = [&](int number, const std::string& model, bool may_be_long) {
    const auto pushed = queue.Push({.model = model, .may_be_long = may_be_long},
                                   {.run = [this, number] { ran_.push_back(number); }});
    ASSERT_TRUE(pushed.taken);
  };
  const auto pop = [&] {
    auto taken = queue.Pop();
    if (taken) std::move(taken->job.run)();
    return taken;
  };
  for (const int number : {1, 2, 3}) push(number, "clips", true);
  auto running = pop();
  ASSERT_TRUE(running);
  EXPECT_FALSE(queue.has_due());
  EXPECT_FALSE(pop()) << "one of the clips' jobs runs";
  push(4, "clips", false);
  push(5, "pictures", false);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(queue.has_due());
    auto other = pop();
    ASSERT_TRUE(other);
    queue.Done(*other, absl::Milliseconds(10));
  }
  EXPECT_THAT(ran_, testing::UnorderedElementsAre(1, 4, 5));
  EXPECT_FALSE(queue.has_due());
  queue.Done(*running, absl::Seconds(30));
  EXPECT_TRUE(queue.has_due());
  running = pop();
  ASSERT_TRUE(running);
  EXPECT_EQ(ran_.back(), 2);
  queue.Done(*running, absl::Seconds(30));
  EXPECT_TRUE(pop());
  EXPECT_FALSE(queue.has_due());
  EXPECT_EQ(queue.size(), 0);
}

TEST_F(DecodeQueueTest, RandomUseKeepsTheBounds) {
  DecodeQueue queue(/*max_jobs=*/6, /*max_long_running=*/1);
  uint32_t random = 1;
  const auto next = [&random](uint32_t below) {
    random = random * 1664525 + 1013904223;
    return (random >> 16) % below;
  };
  std::vector<DecodeQueue::Taken> running;
  int pushed = 0;
  int ended = 0;
  for (int i = 0; i < 20000; ++i) {
    if (next(2) == 0) {
      ++pushed;
      const auto added = queue.Push({.model = std::string(1, static_cast<char>('a' + next(5))),
                                     .weight = 1.0 + next(3),
                                     .priority = static_cast<int>(next(3)),
                                     .deadline = At(static_cast<int>(next(50))),
                                     .may_be_long = next(2) == 0},
                                    {.run = [] {}, .reject = [](const absl::Status&) {}});
      if (added.removed) ++ended;
    } else {
      const bool has_due = queue.has_due();
      auto taken = queue.Pop();
      ASSERT_EQ(taken.has_value(), has_due);
      if (taken) running.push_back(*std::move(taken));
    }
    ASSERT_LE(std::count_if(running.begin(), running.end(), [](const auto& job) { return job.may_be_long; }),
              1);
    if (running.size() > next(4)) {
      queue.Done(running.back(), absl::Milliseconds(next(30)));
      running.pop_back();
      ++ended;
    }
    ASSERT_LE(queue.size(), 6);
    ASSERT_EQ(queue.size(), pushed - ended - static_cast<int>(running.size()));
  }
}

}  // namespace
}  // namespace saccade::server
