#include "server/batching/batch_task.h"

#include <utility>

#include "gtest/gtest.h"
#include "server/batching/testing/recording_task.h"

namespace saccade::server {
namespace {

TEST(BatchTaskTest, TheLastLookKeepsTheOrderOfThoseWhoAreStillThere) {
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  const absl::Time later = now + absl::Seconds(1);
  Watched first = MakeTask({.priority = 1, .arrival = now, .deadline = later});
  Watched cancelled = MakeTask({.arrival = now, .deadline = later});
  Watched late = MakeTask({.arrival = now - absl::Seconds(2), .deadline = now});
  Watched last = MakeTask({.priority = 2, .arrival = now});
  cancelled.fate->cancellation.Cancel();
  std::vector<std::unique_ptr<BatchTask>> tasks;
  for (Watched* watched : {&first, &cancelled, &late, &last}) tasks.push_back(std::move(watched->task));

  DropDead(tasks, now);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0]->priority(), 1);
  EXPECT_EQ(tasks[1]->priority(), 2);
  EXPECT_EQ(first.fate->rejections + last.fate->rejections, 0);
  EXPECT_EQ(cancelled.fate->rejections, 1);
  EXPECT_TRUE(absl::IsCancelled(cancelled.fate->why)) << cancelled.fate->why;
  EXPECT_EQ(late.fate->rejections, 1);
  EXPECT_EQ(late.fate->why,
            absl::DeadlineExceededError("the deadline passed before the request could run: it has "
                                        "waited 2s and had 2s when it arrived"));
  EXPECT_TRUE(cancelled.fate->destroyed && late.fate->destroyed);
}

TEST(BatchTaskTest, WhoIsWatchedByNobodyIsNotCancelled) {
  EXPECT_EQ(CheckAlive({.cancellation = nullptr}, absl::UnixEpoch()), absl::OkStatus());
}

}  // namespace
}  // namespace saccade::server
