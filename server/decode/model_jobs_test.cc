#include "server/decode/model_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;

class ModelJobsTest : public ::testing::Test {
 protected:
  ModelJobs::Key KeyOf(const std::string& client, int priority = 0, int deadline = 1000,
                       bool may_be_long = false) {
    return {client, may_be_long, {priority, absl::UnixEpoch() + absl::Seconds(deadline), ++pushed_}};
  }
  void Insert(const ModelJobs::Key& key) {
    jobs_.Insert(key.client, key.position, {.job = {}, .may_be_long = key.may_be_long});
  }
  void Insert(const std::string& client, int priority = 0, int deadline = 1000, bool may_be_long = false) {
    Insert(KeyOf(client, priority, deadline, may_be_long));
  }

  // Runs the next job, which takes so many seconds. Returns its client.
  std::string Run(double seconds = 1) {
    const std::string client = jobs_.Take(/*takes_long=*/true, /*seconds=*/0).client;
    jobs_.Done(client, seconds);
    return client;
  }
  std::vector<std::string> RunAll() {
    std::vector<std::string> clients;
    while (!jobs_.empty()) clients.push_back(Run());
    return clients;
  }

  ModelJobs jobs_;
  int64_t pushed_ = 0;
};

TEST_F(ModelJobsTest, AClientWithFewJobsDoesNotWaitForOneWithMany) {
  for (int i = 0; i < 5; ++i) Insert("many");
  Insert("few");
  EXPECT_THAT(RunAll(), ElementsAre("many", "few", "many", "many", "many", "many"));
}

TEST_F(ModelJobsTest, ClientsShareTheTimeAndNotTheNumber) {
  std::map<std::string, double> used;
  for (const char* client : {"large", "small"}) {
    for (int i = 0; i < 4000; ++i) Insert(client);
  }
  for (int i = 0; i < 4000; ++i) {
    const std::string client = jobs_.Take(true, 0).client;
    const double seconds = client == "large" ? 0.04 : 0.005;
    jobs_.Done(client, seconds);
    used[client] += seconds;
  }
  EXPECT_NEAR(used["large"] / used["small"], 1, 0.05);
}

TEST_F(ModelJobsTest, PrioritiesGoBeforeTurnsAndTurnsBeforeDeadlines) {
  Insert("a", 0, 10);
  Insert("a", 0, 5);
  Insert("a", 0, 1);
  Insert("b", 0, 20);
  Insert("b", 1, 30);
  EXPECT_THAT(RunAll(), ElementsAre("b", "a", "a", "b", "a"));
}

TEST_F(ModelJobsTest, OfClientsWithTheSameUseTheEarliestDeadlineGoesFirst) {
  Insert("a", 0, 30);
  Insert("b", 0, 10);
  Insert("c", 0, 20);
  Insert("d", 0, 10);
  EXPECT_THAT(RunAll(), ElementsAre("b", "d", "c", "a"));
}

TEST_F(ModelJobsTest, AClientThatWasIdleIsOwedNothing) {
  for (int i = 0; i < 200; ++i) Insert("busy");
  for (int i = 0; i < 100; ++i) Run();
  for (int i = 0; i < 3; ++i) Insert("new");
  std::vector<std::string> clients;
  for (int i = 0; i < 6; ++i) clients.push_back(Run());
  EXPECT_THAT(clients, ElementsAre("new", "busy", "new", "busy", "new", "busy"));
}

// A client that sends one large picture after the other has no job while it receives the answer.
TEST_F(ModelJobsTest, AHigherPriorityDoesNotPutNewClientsBehindThoseWhoWait) {
  for (int i = 0; i < 100; ++i) Insert("bulk");
  for (int i = 0; i < 100; ++i) {
    Insert("first", 1);
    EXPECT_EQ(Run(), "first");
  }
  Insert("new");
  Insert("new");
  EXPECT_THAT((std::vector{Run(), Run(), Run(), Run()}), ElementsAre("bulk", "new", "bulk", "new"));
}

TEST_F(ModelJobsTest, AnIdleClientsUseIsRememberedWhileItIsAheadOfOthers) {
  for (int i = 0; i < 200; ++i) Insert("small");
  const auto run = [this] {
    const std::string client = jobs_.Take(/*takes_long=*/true, /*seconds=*/0).client;
    jobs_.Done(client, client == "large" ? 1 : 0.01);
    return client;
  };
  Insert("large");
  while (run() != "large") {
  }
  EXPECT_EQ(jobs_.clients(), 2u);
  Insert("large");
  int between = 0;
  while (run() != "large") ++between;
  EXPECT_NEAR(between, 100, 3) << "as long as the large one took";
}

TEST_F(ModelJobsTest, LongJobsMayBePassedOver) {
  Insert("a", 1, 1000, /*may_be_long=*/true);
  Insert("a", 0);
  Insert("b", 0, 1000, /*may_be_long=*/true);
  EXPECT_FALSE(jobs_.all_long());
  const ModelJobs::Taken taken = jobs_.Take(/*takes_long=*/false, 1);
  EXPECT_EQ(taken.client, "a");
  EXPECT_FALSE(taken.waiting.may_be_long);
  EXPECT_TRUE(jobs_.all_long());
  jobs_.Done("a", 0);
  EXPECT_THAT(RunAll(), ElementsAre("a", "b"));
}

TEST_F(ModelJobsTest, TheClientWithTheMostJobsMakesRoom) {
  for (int i = 0; i < 3; ++i) Insert("many", 0, 10 + i);
  Insert("few", 0, 99);
  const ModelJobs::Key other = KeyOf("other", 0, 500);
  auto last = jobs_.FindLast(&other);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->client, "many");
  EXPECT_EQ(last->position.deadline, absl::UnixEpoch() + absl::Seconds(12));
  const ModelJobs::Key urgent = KeyOf("many", 0, 1);
  EXPECT_EQ(jobs_.FindLast(&urgent)->client, "many") << "its own last one";
  const ModelJobs::Key late = KeyOf("many", 0, 500);
  EXPECT_FALSE(jobs_.FindLast(&late)) << "the added one";
  Insert("many", 1);
  const ModelJobs::Key high = KeyOf("many", 1);
  EXPECT_EQ(jobs_.FindLast(&high)->position.priority, 0) << "low priorities make room first";
  EXPECT_FALSE(jobs_.At(*last).may_be_long);
  jobs_.Remove(*last);
  EXPECT_EQ(jobs_.size(), 4u);
  while (const auto next = jobs_.FindLast(nullptr)) jobs_.Remove(*next);
  EXPECT_TRUE(jobs_.empty());
  EXPECT_EQ(jobs_.clients(), 0u);
}

// As many addresses as somebody likes.
TEST_F(ModelJobsTest, ClientsThatAreGoneTakeNoMemory) {
  for (int i = 0; i < 3; ++i) Insert("steady");
  Run();
  int steady = 0;
  for (int i = 0; i < 5000; ++i) {
    Insert(absl::StrCat("client-", i));
    if (Run() == "steady") {
      ++steady;
      Insert("steady");
    }
    ASSERT_LE(jobs_.clients(), ModelJobs::kMaxIdleClients + jobs_.size());
  }
  EXPECT_GT(steady, 5) << "it is not passed by for ever";
  RunAll();
  EXPECT_EQ(jobs_.clients(), 0u) << "none is ahead of the others when there are none";
}

TEST_F(ModelJobsTest, RandomUseKeepsTheCounts) {
  uint32_t random = 1;
  const auto next = [&random](uint32_t below) {
    random = random * 1664525 + 1013904223;
    return (random >> 16) % below;
  };
  std::vector<std::string> running;
  size_t waiting = 0;
  for (int i = 0; i < 30000; ++i) {
    const uint32_t act = next(4);
    if (act < 2) {
      Insert(std::string(1, static_cast<char>('a' + next(7))), static_cast<int>(next(3)),
             static_cast<int>(next(50)), next(2) == 0);
      ++waiting;
    } else if (act == 2 && waiting > 0) {
      const bool takes_long = jobs_.all_long() || next(2) == 0;
      const ModelJobs::Taken taken = jobs_.Take(takes_long, 0.1 * next(5));
      ASSERT_TRUE(takes_long || !taken.waiting.may_be_long);
      running.push_back(taken.client);
      --waiting;
    } else if (act == 3 && waiting > 10) {
      const auto last = jobs_.FindLast(nullptr);
      ASSERT_TRUE(last);
      jobs_.Remove(*last);
      --waiting;
    }
    if (running.size() > next(4)) {
      jobs_.Done(running.back(), 0.1 * next(5) - 0.2);
      running.pop_back();
    }
    ASSERT_EQ(jobs_.size(), waiting);
    ASSERT_EQ(jobs_.running(), static_cast<int>(running.size()));
  }
}

}  // namespace
}  // namespace saccade::server
