// Clients that wait for an answer before they send the next request.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "server/batching/recent_max.h"
#include "server/batching/scheduler.h"
#include "server/batching/testing/recording_task.h"

namespace saccade::server {
namespace {

using absl::Microseconds;
using absl::Milliseconds;

TEST(RecentMaxTest, AValueIsRememberedForOneToTwoWindows) {
  constexpr Nanos kWindow = 10 * kMillisecond;
  const NanoTime start = NanoTime() + kSecond;
  RecentMax max;
  EXPECT_EQ(max.At(start, kWindow), 0);
  max.Note(5, start, kWindow);
  max.Note(3, start + 9 * kMillisecond, kWindow);
  EXPECT_EQ(max.At(start + 9 * kMillisecond, kWindow), 5);
  max.Note(2, start + 12 * kMillisecond, kWindow);
  EXPECT_EQ(max.At(start + 12 * kMillisecond, kWindow), 5) << "of the window before";
  EXPECT_EQ(max.At(start + 22 * kMillisecond, kWindow), 2);
  EXPECT_EQ(max.At(start + 32 * kMillisecond, kWindow), 0);
  max.Note(1, start + kSecond, kWindow);
  EXPECT_EQ(max.At(start + kSecond, kWindow), 1) << "nothing is left after a long pause";
}

// A model whose passes jitter by a quarter. Batching gains little: a pass over n items takes 1 + 9 n ms.
class ClosedLoopTest : public ::testing::Test {
 protected:
  ClosedLoopTest() {
    model_ = scheduler_.AddModel({.max_batch_size = 16, .max_queue_size = 1000}, {0});
    for (const int64_t size : {1, 16}) {
      for (int i = 0; i < 100; ++i) scheduler_.Learn(model_, 0, size, Took(size));
    }
  }

  absl::Duration Took(int64_t size) {
    return Milliseconds(1 + 9 * size) * (passes_++ % 2 == 0 ? 1.25 : 0.75);
  }

  void Push(int requests, absl::Duration left = Milliseconds(80)) {
    for (int i = 0; i < requests; ++i) {
      Watched watched = MakeTask({.arrival = now_, .deadline = now_ + left});
      ASSERT_TRUE(scheduler_.Push(model_, watched.task, now_, &dropped_).ok());
    }
  }

  // Waits until a batch starts, computes it, and returns its size. `*waited` is set to how long it took to
  // start.
  int64_t Compute(absl::Duration* waited) {
    const absl::Time from = now_;
    auto batch = scheduler_.Next(now_, &dropped_);
    while (!batch && scheduler_.wake_at() < absl::InfiniteFuture()) {
      now_ = std::max(now_ + absl::Nanoseconds(1), scheduler_.wake_at());
      batch = scheduler_.Next(now_, &dropped_);
    }
    *waited = now_ - from;
    if (!batch) return 0;
    const auto size = static_cast<int64_t>(batch->tasks.size());
    now_ += Took(size);
    scheduler_.Finished(model_, batch->instance, now_, /*learn=*/true);
    return size;
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  Scheduler scheduler_{{.cores = 1}};
  Scheduler::ModelId model_ = 0;
  std::vector<Scheduler::Dropped> dropped_;
  int64_t passes_ = 0;
};

// One client that sends its requests one after the other keeps an instance busy all the time. A high arrival
// rate alone is no reason to wait for a larger batch, because no other client sends requests.
TEST_F(ClosedLoopTest, ALoneClientNeverWaits) {
  for (int i = 0; i < 1000; ++i) {
    Push(1);
    absl::Duration waited;
    ASSERT_EQ(Compute(&waited), 1);
    ASSERT_EQ(waited, absl::ZeroDuration()) << "request " << i;
    now_ += Microseconds(100);
  }
}

TEST_F(ClosedLoopTest, ClientsThatAreAllThereWaitForNobody) {
  for (int i = 0; i < 1000; ++i) {
    Push(3, Milliseconds(400));
    absl::Duration waited;
    ASSERT_EQ(Compute(&waited), 3);
    ASSERT_EQ(waited, absl::ZeroDuration()) << "round " << i;
    now_ += Microseconds(100);
  }
}

// The same requests as those of the lone client, beside a second client of whom one request is due: where
// batches would gain, requests wait for those that may come.
TEST_F(ClosedLoopTest, ARequestWaitsForAClientThatWasThere) {
  absl::Duration longest;
  for (int i = 0; i < 1000; ++i) {
    Push(i % 4 == 3 ? 2 : 1);
    absl::Duration waited;
    ASSERT_GE(Compute(&waited), 1);
    longest = std::max(longest, waited);
    now_ += Microseconds(100);
  }
  EXPECT_GT(longest, Milliseconds(2));
  EXPECT_TRUE(dropped_.empty());
}

// The window of what was in flight is bounded.
TEST_F(ClosedLoopTest, AClientIsAloneSoonAfterTheOthersHaveLeft) {
  Push(8);
  absl::Duration waited;
  while (Compute(&waited) > 0) {
  }
  const absl::Time left = now_;
  for (int i = 0; now_ < left + absl::Seconds(2); ++i) {
    Push(1);
    ASSERT_EQ(Compute(&waited), 1);
    if (now_ > left + Milliseconds(700)) {
      ASSERT_EQ(waited, absl::ZeroDuration()) << "request " << i;
    }
    now_ += Microseconds(100);
  }
}

}  // namespace
}  // namespace saccade::server
