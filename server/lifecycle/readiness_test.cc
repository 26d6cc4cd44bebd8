#include "server/lifecycle/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "server/lifecycle/testing/fake_health.h"

namespace saccade::server {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Pair;
using testing::UnorderedElementsAre;

class ReadinessTest : public testing::Test {
 protected:
  ReadinessTest() { readiness_.Attach(health_.publish()); }

  FakeHealth health_;
  Readiness readiness_;
};

TEST_F(ReadinessTest, StartsLiveAndNotReady) {
  EXPECT_FALSE(readiness_.ready());
  EXPECT_TRUE(readiness_.live());
  EXPECT_THAT(health_.all(),
              UnorderedElementsAre(Pair("", false), Pair("saccade.v1.Vision", false),
                                   Pair("inference.GRPCInferenceService", false), Pair("liveness", true)));
}

TEST_F(ReadinessTest, TheServicesAreReadyWhileTheRequiredModelsAre) {
  for (const bool ready : {true, false, true}) {
    readiness_.ModelsReady(ready);
    EXPECT_EQ(readiness_.ready(), ready);
    for (const char* service : {"", "saccade.v1.Vision", "inference.GRPCInferenceService"})
      EXPECT_EQ(health_.all().at(service), ready) << service;
  }
}

// A client that has seen "" SERVING may ask for a service at once.
TEST_F(ReadinessTest, TheWholeDaemonIsNeverServingBeforeItsServices) {
  std::map<std::string, bool> health;
  Readiness readiness;
  readiness.Attach([&](const std::string& service, bool serving) {
    health[service] = serving;
    if (!health[""]) return;
    EXPECT_THAT(health, Each(Pair(testing::_, true))) << "after " << service;
  });
  readiness.ModelsReady(true);
  readiness.ModelsReady(false);
  readiness.ModelsReady(true);
  EXPECT_TRUE(health[""]);
  readiness.StartDraining();
  EXPECT_FALSE(health[""]);
}

TEST_F(ReadinessTest, OnceItStopsWaitingOneModelSuffices) {
  readiness_.ModelChanged("a", false);
  EXPECT_TRUE(readiness_.StopWaiting());
  EXPECT_FALSE(readiness_.ready()) << "nothing is served";
  readiness_.ModelChanged("b", true);
  EXPECT_TRUE(readiness_.ready());
  for (const char* service : {"", "saccade.v1.Vision", "inference.GRPCInferenceService"})
    EXPECT_TRUE(health_.all().at(service)) << service;
  EXPECT_FALSE(health_.all().at("a"));
  readiness_.ModelChanged("b", false);
  EXPECT_FALSE(readiness_.ready());
}

TEST_F(ReadinessTest, WhatIsLoadedSufficesAtOnce) {
  readiness_.ModelChanged("a", true);
  EXPECT_FALSE(readiness_.ready()) << "others are still to be loaded";
  EXPECT_TRUE(readiness_.StopWaiting());
  EXPECT_TRUE(readiness_.ready());
}

TEST_F(ReadinessTest, OnceAllModelsWereServedTheyAllCountAgain) {
  readiness_.ModelChanged("a", true);
  ASSERT_TRUE(readiness_.StopWaiting());
  readiness_.ModelsReady(false);
  EXPECT_TRUE(readiness_.ready()) << "a model that failed to load does not take the others away";
  readiness_.ModelsReady(true);
  EXPECT_TRUE(readiness_.ready());
  EXPECT_FALSE(readiness_.StopWaiting());
  readiness_.ModelsReady(false);
  EXPECT_FALSE(readiness_.ready());
}

TEST_F(ReadinessTest, ADrainThatBeginsWhileModelsLoadIsNotUndone) {
  readiness_.ModelChanged("a", true);
  readiness_.StartDraining();
  EXPECT_TRUE(readiness_.StopWaiting());
  EXPECT_FALSE(readiness_.ready());
  EXPECT_FALSE(health_.all().at(""));
}

TEST_F(ReadinessTest, EachModelHasAHealthOfItsOwn) {
  readiness_.ModelChanged("a", true);
  readiness_.ModelChanged("b", false);
  EXPECT_THAT(health_.all(), IsSupersetOf({Pair("a", true), Pair("b", false)}));
  readiness_.ModelChanged("a", false);
  EXPECT_FALSE(health_.all().at("a"));
}

TEST_F(ReadinessTest, AModelWithTheNameOfAServiceChangesNothing) {
  const auto before = health_.all();
  for (const char* name : {"", "liveness", "saccade.v1.Vision", "inference.GRPCInferenceService"})
    readiness_.ModelChanged(name, name != std::string("liveness"));
  EXPECT_EQ(health_.all(), before);
}

TEST_F(ReadinessTest, WhileDrainingOnlyLivenessIsServing) {
  readiness_.ModelsReady(true);
  readiness_.ModelChanged("a", true);
  readiness_.StartDraining();
  EXPECT_FALSE(readiness_.ready());
  EXPECT_TRUE(readiness_.live());
  std::map<std::string, bool> health = health_.all();
  EXPECT_TRUE(health.extract("liveness").mapped());
  EXPECT_THAT(health, Each(Pair(testing::_, false)));
}

TEST_F(ReadinessTest, WhatBecomesReadyDuringADrainIsNotServing) {
  readiness_.StartDraining();
  readiness_.ModelsReady(true);
  readiness_.ModelChanged("late", true);
  EXPECT_FALSE(readiness_.ready());
  EXPECT_FALSE(health_.all().at(""));
  EXPECT_FALSE(health_.all().at("late"));
}

// A probe that asks at the wrong moment would restart a daemon that drains.
TEST_F(ReadinessTest, LivenessIsNeverNotServingBetween) {
  readiness_.ModelsReady(true);
  readiness_.StartDraining();
  EXPECT_THAT(health_.history("liveness"), ElementsAre(true));
}

TEST_F(ReadinessTest, LivenessChangesByItself) {
  readiness_.ModelsReady(true);
  EXPECT_FALSE(readiness_.SetLive(true)) << "no change";
  EXPECT_TRUE(readiness_.SetLive(false));
  EXPECT_FALSE(readiness_.live());
  EXPECT_TRUE(readiness_.ready());
  EXPECT_FALSE(readiness_.SetLive(false));
  readiness_.StartDraining();
  EXPECT_TRUE(readiness_.SetLive(true));
  EXPECT_THAT(health_.history("liveness"), ElementsAre(true, false, true));
}

// The catalog's thread publishes a model that has become ready while the main thread starts to drain.
TEST_F(ReadinessTest, NoOrderOfThreadsBringsHealthBack) {
  for (int round = 0; round < 300; ++round) {
    FakeHealth health;
    Readiness readiness;
    readiness.Attach(health.publish());
    std::thread catalog([&] {
      for (int i = 0; i < 5; ++i) {
        readiness.ModelChanged("m", true);
        readiness.ModelsReady(true);
        readiness.ModelsReady(false);
        readiness.ModelsReady(true);
      }
    });
    std::this_thread::yield();
    readiness.StartDraining();
    // From now on, whatever the catalog still does.
    EXPECT_FALSE(readiness.ready());
    catalog.join();
    std::map<std::string, bool> state = health.all();
    EXPECT_TRUE(state.extract("liveness").mapped());
    EXPECT_THAT(state, Each(Pair(testing::_, false))) << "round " << round;
  }
}

}  // namespace
}  // namespace saccade::server
