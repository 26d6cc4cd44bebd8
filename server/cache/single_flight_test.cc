#include "server/cache/single_flight.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "server/core/inline_passes.h"

namespace saccade::server {
namespace {

using Event = SingleFlight::Event;

CacheKey Key(int number) {
  CacheKey key{};
  std::memcpy(key.data(), &number, sizeof(number));
  return key;
}

absl::Time At(int second) { return absl::UnixEpoch() + absl::Seconds(second); }

class SingleFlightTest : public ::testing::Test {
 protected:
  // A request that notes how it is resumed.
  std::shared_ptr<SingleFlight::Flight> Join(const std::string& name, int deadline = 100, int priority = 0,
                                             int key = 1, int64_t turn = 0) {
    SingleFlight::Waiter waiter = {
        .priority = priority,
        .deadline = At(deadline),
        .turn = turn,
        .check = [this, name, deadline](absl::Time now) -> absl::Status {
          if (cancelled_ == name) return absl::CancelledError("the client left");
          return now < At(deadline) ? absl::OkStatus() : absl::DeadlineExceededError("late");
        },
        .resume =
            [this, name](Event event, const absl::Status& why) {
              EXPECT_EQ(why.ok(), event != Event::kExpired);
              // A waiter may have to be computed, and the others do not wait for that.
              if (event != Event::kExpired) {
                EXPECT_EQ(LimitInlinePasses::Current(), InlinePasses::kNone);
              }
              resumed_.emplace_back(name, event);
              if (event == Event::kLeaderLeft && rejoins_) leaders_[name] = Join(name);
            },
    };
    return flights_.Join(&scope_, Key(key), waiter);
  }

  const int scope_ = 0;
  SingleFlight flights_;
  std::string cancelled_;
  bool rejoins_ = false;
  std::vector<std::pair<std::string, Event>> resumed_;
  // Those that lead after they joined again; null for those that wait.
  std::map<std::string, std::shared_ptr<SingleFlight::Flight>> leaders_;
};

using Resumed = std::vector<std::pair<std::string, Event>>;

TEST_F(SingleFlightTest, TheFirstLeadsAndTheOthersWait) {
  const auto flight = Join("a");
  ASSERT_NE(flight, nullptr);
  EXPECT_EQ(Join("b"), nullptr);
  EXPECT_EQ(Join("c"), nullptr);
  EXPECT_EQ(flights_.waiting(), 2);
  flights_.Land(flight, absl::OkStatus());
  EXPECT_EQ(resumed_, (Resumed{{"b", Event::kAnswered}, {"c", Event::kAnswered}}));
  EXPECT_EQ(flights_.waiting(), 0);
  EXPECT_NE(Join("d"), nullptr) << "what has landed is not joined";
}

TEST_F(SingleFlightTest, OtherKeysAndVersionsFlyAlone) {
  const auto flight = Join("a");
  EXPECT_NE(Join("b", 100, 0, /*key=*/2), nullptr);
  SingleFlight::Waiter waiter;
  const int other_version = 0;
  EXPECT_NE(flights_.Join(&other_version, Key(1), waiter), nullptr);
}

// The leader of one flight must not delay a request that would be computed before it.
TEST_F(SingleFlightTest, AMoreUrgentRequestDoesNotWait) {
  const auto slow = Join("slow", 50);
  const auto urgent = Join("urgent", 10);
  ASSERT_NE(urgent, nullptr);
  EXPECT_EQ(Join("later", 20), nullptr) << "it joins the one that is urgent enough";
  flights_.Land(slow, absl::OkStatus());
  EXPECT_TRUE(resumed_.empty());
  const auto first = Join("first", 20, /*priority=*/1);
  ASSERT_NE(first, nullptr);
  flights_.Land(urgent, absl::OkStatus());
  EXPECT_EQ(resumed_, (Resumed{{"later", Event::kAnswered}}));
  EXPECT_EQ(Join("last", 30, 0), nullptr);
  flights_.Land(first, absl::OkStatus());
  EXPECT_EQ(resumed_.back(), (std::pair<std::string, Event>{"last", Event::kAnswered}));
}

// The leader's answer would wait for the earlier request, which would wait for the answer.
TEST_F(SingleFlightTest, ARequestWithAnEarlierTurnDoesNotWait) {
  const auto later = Join("later", 100, 0, 1, /*turn=*/5);
  const auto earlier = Join("earlier", 100, 0, 1, /*turn=*/3);
  ASSERT_NE(earlier, nullptr);
  EXPECT_EQ(Join("between", 100, 0, 1, /*turn=*/4), nullptr) << "it joins the earlier one";
  flights_.Land(later, absl::OkStatus());
  EXPECT_TRUE(resumed_.empty());
  flights_.Land(earlier, absl::OkStatus());
  EXPECT_EQ(resumed_, (Resumed{{"between", Event::kAnswered}}));
}

TEST_F(SingleFlightTest, IfTheLeaderLeavesAnotherLeadsAndTheRestWait) {
  for (const auto& why : {absl::CancelledError(), absl::DeadlineExceededError(""),
                          absl::ResourceExhaustedError("queue full"), absl::UnavailableError("unloaded")}) {
    rejoins_ = true;
    resumed_.clear();
    leaders_.clear();
    const auto flight = Join("a");
    Join("b");
    Join("c");
    flights_.Land(flight, why);
    EXPECT_EQ(resumed_, (Resumed{{"b", Event::kLeaderLeft}, {"c", Event::kLeaderLeft}}));
    ASSERT_NE(leaders_["b"], nullptr);
    EXPECT_EQ(leaders_["c"], nullptr);
    EXPECT_EQ(flights_.waiting(), 1);
    rejoins_ = false;
    flights_.Land(leaders_["b"], absl::OkStatus());
    EXPECT_EQ(resumed_.back(), (std::pair<std::string, Event>{"c", Event::kAnswered}));
  }
}

TEST_F(SingleFlightTest, IfTheLeaderFailsNobodyWaitsForAnother) {
  for (const auto& why :
       {absl::InternalError("the pass failed"), absl::InvalidArgumentError("no such output")}) {
    resumed_.clear();
    const auto flight = Join("a");
    Join("b");
    flights_.Land(flight, why);
    EXPECT_EQ(resumed_, (Resumed{{"b", Event::kLeaderFailed}}));
  }
}

// The leader's thread computes passes, and other requests wait for it.
TEST_F(SingleFlightTest, ManyWaitersAreResumedElsewhere) {
  constexpr size_t kAtOnce = SingleFlight::kResumedAtOnce;
  const auto flight = Join("leader");
  for (size_t i = 0; i < 2 * kAtOnce + 1; ++i) Join("waiter");
  std::deque<std::function<void()>> tasks;
  flights_.Land(flight, absl::OkStatus(), [&tasks](std::function<void()> task) {
    tasks.push_back(std::move(task));
    return true;
  });
  for (const size_t resumed : {kAtOnce, 2 * kAtOnce, 2 * kAtOnce + 1}) {
    EXPECT_EQ(resumed_.size(), resumed);
    if (tasks.empty()) continue;
    EXPECT_EQ(tasks.size(), 1) << "one after the other";
    std::exchange(tasks.front(), nullptr)();
    tasks.pop_front();
  }
  EXPECT_TRUE(tasks.empty());
}

TEST_F(SingleFlightTest, WithoutRoomElsewhereAllAreResumedHere) {
  const auto flight = Join("leader");
  for (size_t i = 0; i < 3 * SingleFlight::kResumedAtOnce; ++i) Join("waiter");
  int asked = 0;
  flights_.Land(flight, absl::OkStatus(), [&asked](const std::function<void()>&) {
    ++asked;
    return false;
  });
  EXPECT_EQ(resumed_.size(), 3 * SingleFlight::kResumedAtOnce);
  EXPECT_EQ(asked, 2);
}

TEST_F(SingleFlightTest, WaitersExpireByThemselves) {
  const auto flight = Join("a", 5);
  Join("b", 7);
  Join("c", 50);
  Join("d", 50);
  flights_.Sweep(At(6));
  EXPECT_TRUE(resumed_.empty()) << "the leader's deadline is not theirs";
  cancelled_ = "d";
  flights_.Sweep(At(8));
  EXPECT_EQ(resumed_, (Resumed{{"b", Event::kExpired}, {"d", Event::kExpired}}));
  flights_.Land(flight, absl::OkStatus());
  EXPECT_EQ(resumed_.back(), (std::pair<std::string, Event>{"c", Event::kAnswered}));
  EXPECT_EQ(resumed_.size(), 3u);
}

// Thousands that wait for leaders that leave at once are resumed without deep recursion.
TEST_F(SingleFlightTest, ManyLeadersThatLeaveAtOnce) {
  constexpr int kWaiters = 100000;
  int left = 0;
  std::function<SingleFlight::Waiter()> make = [&] {
    return SingleFlight::Waiter{
        .check = [](absl::Time) { return absl::OkStatus(); },
        .resume =
            [&](Event, const absl::Status&) {
              ++left;
              SingleFlight::Waiter again = make();
              const auto flight = flights_.Join(&scope_, Key(1), again);
              ASSERT_NE(flight, nullptr);
              flights_.Land(flight, absl::ResourceExhaustedError("queue full"));
            },
    };
  };
  SingleFlight::Waiter first = make();
  const auto flight = flights_.Join(&scope_, Key(1), first);
  for (int i = 0; i < kWaiters; ++i) {
    SingleFlight::Waiter waiter = make();
    ASSERT_EQ(flights_.Join(&scope_, Key(1), waiter), nullptr);
  }
  flights_.Land(flight, absl::ResourceExhaustedError("queue full"));
  EXPECT_EQ(left, kWaiters);
}

TEST_F(SingleFlightTest, ManyThreads) {
  std::atomic<int> led{0};
  std::atomic<int> resumed{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        SingleFlight::Waiter waiter = {.check = [](absl::Time) { return absl::OkStatus(); },
                                       .resume = [&](Event, const absl::Status&) { ++resumed; }};
        if (const auto flight = flights_.Join(&scope_, Key(i % 3), waiter)) {
          ++led;
          flights_.Land(flight, absl::OkStatus());
        }
        flights_.Sweep(At(1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(led + resumed, 4000);
  EXPECT_EQ(flights_.waiting(), 0);
}

}  // namespace
}  // namespace saccade::server
