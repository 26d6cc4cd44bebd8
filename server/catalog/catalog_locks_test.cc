// Calls to the catalog that must not wait for the lock of a model's devices.
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/catalog/catalog.h"
#include "server/catalog/testing/catalog_fixture.h"
#include "server/core/clock.h"

namespace saccade::server {
namespace {

using State = ModelSnapshot::State;

// Stops one thread at its next look at the clock, which a device does with its lock held.
class StoppingClock final : public Clock {
 public:
  absl::Time Now() override {
    if (std::exchange(stops_here, false)) {
      stopped.Notify();
      released.WaitForNotification();
    }
    return Clock::Real()->Now();
  }
  bool AwaitUntil(absl::Mutex* mu, const absl::Condition& condition, absl::Time deadline) override {
    return Clock::Real()->AwaitUntil(mu, condition, deadline);
  }

  static thread_local bool stops_here;
  absl::Notification stopped;
  absl::Notification released;
};

thread_local bool StoppingClock::stops_here = false;

class CatalogLocksTest : public CatalogTest {
 protected:
  // The catalog uses the clock until its end.
  void TearDown() override { catalog_.reset(); }

  // Runs `action` on another thread while a request holds the lock of the devices of this version of model
  // "m". Returns whether it ends. REQUIRES: the catalog's clock is `stopping_`. Called once.
  bool EndsWhileDevicesAreLocked(int64_t version, const std::function<void()>& action) {
    const auto found = catalog_->FindReady("m", version);
    EXPECT_TRUE(found.ok()) << found.status();
    if (!found.ok()) return false;
    std::thread request([&] {
      StoppingClock::stops_here = true;
      const std::vector<int64_t> buckets = {0};
      EXPECT_TRUE((*found)->Consider({}, buckets).ok());
    });
    stopping_.stopped.WaitForNotification();
    absl::Notification ended;
    std::thread acting([&] {
      action();
      ended.Notify();
    });
    const bool ends = ended.WaitForNotificationWithTimeout(absl::Seconds(60));
    stopping_.released.Notify();
    request.join();
    acting.join();
    return ends;
  }

  StoppingClock stopping_;
};

TEST_F(CatalogLocksTest, AScrapeDoesNotWaitForTheLockOfTheDevices) {
  Write("m", 1);
  ASSERT_TRUE(StartOn(&stopping_, {.repositories = {repository_.string()}, .cores = 2}).ok());
  EXPECT_TRUE(EndsWhileDevicesAreLocked(1, [&] { catalog_->RefreshGauges(); }));
}

// A shadow version's thread may hold the lock for long, because it runs only on idle cores.
TEST_F(CatalogLocksTest, NeitherADescriptionNorASweepWaitsForTheLockOfTheIdleCores) {
  Write("m", 2);
  Write("m", 1, kShadow);
  ASSERT_TRUE(StartOn(&stopping_, {.repositories = {repository_.string()}, .cores = 2}).ok());
  EXPECT_TRUE(EndsWhileDevicesAreLocked(2, [&] {
    catalog_->Sweep();
    const auto described = catalog_->Describe("m", 2);
    ASSERT_TRUE(described.ok()) << described.status();
    EXPECT_EQ(described->state, State::kReady);
    EXPECT_FALSE(described->timing);
  }));
  EXPECT_TRUE(catalog_->Describe("m", 1)->timing);
}

}  // namespace
}  // namespace saccade::server
