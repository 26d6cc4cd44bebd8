#include "server/decode/decode_pool.h"

#include <pthread.h>

#include <atomic>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/fake_clock.h"
#include "server/core/inline_passes.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

std::unique_ptr<DecodePool> MakePool(DecodePoolOptions options) {
  auto pool = DecodePool::Create(std::move(options));
  EXPECT_TRUE(pool.ok()) << pool.status();
  return *std::move(pool);
}

TEST(DecodePoolTest, BadOptionsAreAnError) {
  EXPECT_EQ(DecodePool::Create({.threads = 0}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodePool::Create({.max_pending = 0}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DecodePoolTest, RunsEverythingInOrder) {
  std::vector<int> order;
  {
    auto pool = MakePool({.threads = 1});
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(pool->Schedule([&order, i] { order.push_back(i); }).ok());
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

// Each task waits until all tasks run, so with fewer threads than tasks the test would hang.
TEST(DecodePoolTest, ThreadsRunAtTheSameTime) {
  auto pool = MakePool({.threads = 3});
  std::latch all(3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pool->Schedule([&all] { all.count_down(); }).ok());
  }
  all.wait();
}

// Were both threads to run clips, the picture would wait for ever.
TEST(DecodePoolTest, LongTasksLeaveAThreadToTheOthers) {
  auto pool = MakePool({.threads = 2});
  std::latch picture(1);
  std::atomic<int> ended{0};
  const auto clip = [&] {
    picture.wait();
    ++ended;
  };
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(pool->Schedule(clip, {.model = "clips", .may_be_long = true}).ok());
  }
  ASSERT_TRUE(pool->Schedule([&] { picture.count_down(); }, {.model = "pictures"}).ok());
  picture.wait();
  pool.reset();
  EXPECT_EQ(ended, 5) << "all run before the pool ends";
}

TEST(DecodePoolTest, AllThreadsButOneRunLongTasks) {
  std::latch both(2);
  auto pool = MakePool({.threads = 3});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(
        pool->Schedule([&] { both.arrive_and_wait(); }, {.model = "clips", .may_be_long = true}).ok());
  }
  both.wait();
}

TEST(DecodePoolTest, ASingleThreadRunsLongTasks) {
  std::latch ended(2);
  auto pool = MakePool({.threads = 1});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(pool->Schedule([&] { ended.count_down(); }, {.model = "clips", .may_be_long = true}).ok());
  }
  ended.wait();
}

TEST(DecodePoolTest, RefusesBeyondItsBoundAndRecovers) {
  std::latch started(1);
  std::latch go(1);
  std::atomic<int> ran{0};
  auto pool = MakePool({.threads = 1, .max_pending = 2});
  ASSERT_TRUE(pool->Schedule([&] {
                    started.count_down();
                    go.wait();
                  })
                  .ok());
  started.wait();
  std::latch accepted(2);
  const auto count = [&] {
    ++ran;
    accepted.count_down();
  };
  EXPECT_TRUE(pool->Schedule(count).ok());
  EXPECT_TRUE(pool->Schedule(count).ok());
  EXPECT_EQ(pool->pending(), 2);
  EXPECT_EQ(pool->Schedule(count).code(), absl::StatusCode::kResourceExhausted);
  go.count_down();
  accepted.wait();
  EXPECT_TRUE(pool->Schedule([] {}).ok()) << "there is room again";
  pool.reset();
  EXPECT_EQ(ran, 2) << "the refused task was not kept";
}

TEST(DecodePoolTest, AnUrgentTaskTakesThePlaceOfTheLast) {
  std::latch started(1);
  std::latch go(1);
  std::vector<std::string> order;
  auto pool = MakePool({.threads = 1, .max_pending = 2});
  ASSERT_TRUE(pool->Schedule([&] {
                    started.count_down();
                    go.wait();
                  })
                  .ok());
  started.wait();
  absl::Status rejected;
  const auto schedule = [&](const std::string& name, int deadline) {
    return pool->Schedule([&order, name] { order.push_back(name); },
                          {.model = "m", .deadline = absl::UnixEpoch() + absl::Seconds(deadline)},
                          [&rejected](absl::Status why) { rejected = std::move(why); });
  };
  EXPECT_TRUE(schedule("late", 9).ok());
  EXPECT_TRUE(schedule("early", 5).ok());
  EXPECT_TRUE(rejected.ok());
  EXPECT_TRUE(schedule("first", 1).ok());
  EXPECT_EQ(rejected.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(schedule("last", 99).code(), absl::StatusCode::kResourceExhausted);
  go.count_down();
  pool.reset();
  EXPECT_THAT(order, ElementsAre("first", "early"));
}

TEST(DecodePoolTest, DestructionFinishesWhatWasScheduled) {
  std::atomic<int> ran{0};
  std::latch go(1);
  {
    auto pool = MakePool({.threads = 2});
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(pool->Schedule([&] {
                        go.wait();
                        ++ran;
                      })
                      .ok());
    }
    go.count_down();
  }
  EXPECT_EQ(ran, 50);
}

TEST(DecodePoolTest, PassesThatATaskComputesAreNoDemandOfDecoding) {
  FakeClock clock;
  auto pool = MakePool({.threads = 1, .clock = &clock});
  ASSERT_TRUE(pool->Schedule([&] {
                    clock.Advance(absl::Milliseconds(10));
                    const TimeInlinePasses passes(&clock);
                    clock.Advance(absl::Milliseconds(30));
                  })
                  .ok());
  std::latch next(1);
  ASSERT_TRUE(pool->Schedule([&] { next.count_down(); }).ok());
  next.wait();
  EXPECT_EQ(pool->TakeDemand(), absl::Milliseconds(10));
}

TEST(DecodePoolTest, TasksAreDestroyedAfterTheyRan) {
  auto pool = MakePool({.threads = 1});
  auto held = std::make_unique<int>(3);
  std::weak_ptr<int> watched;
  {
    auto shared = std::make_shared<int>(4);
    watched = shared;
    ASSERT_TRUE(pool->Schedule([shared, moved = std::move(held)] {}).ok());
  }
  pool.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(DecodePoolTest, ExceptionsAreReportedAndTheThreadLivesOn) {
  absl::Mutex mutex;
  std::vector<std::string> reported;
  DecodePoolOptions options{.threads = 1};
  options.on_exception = [&](const std::string& what) {
    absl::MutexLock lock(&mutex);
    reported.push_back(what);
  };
  std::latch survived(1);
  auto pool = MakePool(options);
  ASSERT_TRUE(pool->Schedule([] { throw std::runtime_error("broken picture"); }).ok());
  ASSERT_TRUE(pool->Schedule([] { throw 7; }).ok());
  ASSERT_TRUE(pool->Schedule([&] { survived.count_down(); }).ok());
  survived.wait();
  absl::MutexLock lock(&mutex);
  EXPECT_THAT(reported, ElementsAre("broken picture", "an exception of unknown type"));
}

TEST(DecodePoolTest, ExceptionsNeedNobodyToListen) {
  auto pool = MakePool({.threads = 1});
  std::latch survived(1);
  ASSERT_TRUE(pool->Schedule([] { throw std::runtime_error("unheard"); }).ok());
  ASSERT_TRUE(pool->Schedule([&] { survived.count_down(); }).ok());
  survived.wait();
}

TEST(DecodePoolTest, ThreadsHaveNames) {
  std::string name(16, '\0');
  std::latch done(1);
  auto pool = MakePool({});
  ASSERT_TRUE(pool->Schedule([&] {
                    pthread_getname_np(pthread_self(), name.data(), name.size());
                    done.count_down();
                  })
                  .ok());
  done.wait();
  EXPECT_THAT(name, StartsWith("decode-"));
}

}  // namespace
}  // namespace saccade::server
